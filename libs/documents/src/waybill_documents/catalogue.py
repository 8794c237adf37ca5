"""Lists the shipped mappings and summarises them without loading them.

This is for services that name mappings but convert nothing. They read a small JSON file and do not have to import a PDF
library.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

FILE = "mapping.json"
EARLIER = "earlier"
"""The folder of what earlier releases had as a mapping, so that their records can still be corrected."""

_EMBEDDED_ROOTS = {"cii": ("CrossIndustryInvoice",), "ubl": ("Invoice", "CreditNote")}


@dataclass(frozen=True, slots=True)
class Summary:
    """What a list of mappings shows of one."""

    name: str
    title: str
    roots: tuple[str, ...]
    """The possible root elements of the XML it writes, without a prefix."""


def folder() -> Traversable:
    """The folder of the shipped mappings; each one has a folder with its name."""
    return resources.files("waybill_documents") / "mappings"


@cache
def names() -> tuple[str, ...]:
    """The names of the shipped mappings."""
    return tuple(sorted(each.name for each in folder().iterdir() if (each / FILE).is_file()))


@cache
def summary(name: str) -> Summary | None:
    """A shipped mapping, or None. Only listed names ever become part of a path."""
    if name not in names():
        return None
    document = _document(name)
    if "embedded" in document:
        roots = _EMBEDDED_ROOTS[document["embedded"]["output"]]
    else:
        roots = (document["xml"]["root"]["name"].rpartition(":")[2],) if "xml" in document else ()
    return Summary(name, document["title"], roots)


@cache
def reads_xml(name: str) -> bool:
    """Whether a mapping reads e-invoices as XML. Of a mapping that is not shipped, that is not known here: it may."""
    return name not in names() or "embedded" in _document(name)


def _document(name: str) -> Any:
    return json.loads((folder() / name / FILE).read_bytes())
