"""Which mappings are shipped, and what can be known of them without loading one.

For services that name mappings but convert nothing: reading a small JSON file costs them neither a PDF library nor
the megabytes that come with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

FILE = "mapping.json"

_EMBEDDED_ROOTS = {"cii": ("CrossIndustryInvoice",), "ubl": ("Invoice", "CreditNote")}


@dataclass(frozen=True, slots=True)
class Summary:
    """A mapping in a line."""

    name: str
    title: str
    roots: tuple[str, ...]
    """What the XML it writes may begin with, without a prefix."""


def folder() -> Traversable:
    """Where the shipped mappings lie, each in a folder of its name."""
    return resources.files("waybill_documents") / "mappings"


@cache
def names() -> tuple[str, ...]:
    """The mappings that are shipped."""
    return tuple(sorted(each.name for each in folder().iterdir() if (each / FILE).is_file()))


@cache
def summary(name: str) -> Summary | None:
    """A shipped mapping; none if there is none. Only listed names are ever made into a path."""
    if name not in names():
        return None
    document = json.loads((folder() / name / FILE).read_bytes())
    if "embedded" in document:
        roots = _EMBEDDED_ROOTS[document["embedded"]["output"]]
    else:
        roots = (document["xml"]["root"]["name"].rpartition(":")[2],) if "xml" in document else ()
    return Summary(name, document["title"], roots)
