"""Lists the shipped mappings and summarises them without loading them.

This is for services that name mappings but convert nothing. They read a small JSON file and do not have to import a PDF
library.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

FILE = "mapping.json"
EARLIER = "earlier"
"""The folder of what earlier releases had as a mapping, so that their records can still be corrected."""

AUTO = "auto"
"""What is written in place of a mapping's name when the document shall decide. No mapping can have this name."""

_EMBEDDED_ROOTS = {"cii": ("CrossIndustryInvoice",), "ubl": ("Invoice", "CreditNote")}


@dataclass(frozen=True, slots=True)
class Summary:
    """What a list of mappings shows of one."""

    name: str
    title: str
    roots: tuple[str, ...]
    """The possible root elements of the XML it writes, without a prefix."""
    sha256: str
    embedded: bool
    """Whether it reads e-invoices, embedded in a PDF or as XML, and not what is printed on pages."""


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
    return summarised((folder() / name / FILE).read_bytes())


def summarised(content: bytes) -> Summary:
    """The summary of a mapping. Raises ValueError for what is none; whether it is valid, only the loader knows."""
    document = json.loads(content)
    try:
        embedded = document.get("embedded") is not None
        if embedded:
            roots = _EMBEDDED_ROOTS[document["embedded"]["output"]]
        else:
            roots = (document["xml"]["root"]["name"].rpartition(":")[2],) if "xml" in document else ()
        name, title = document["name"], document["title"]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it has no {error}") from error
    if not (isinstance(name, str) and isinstance(title, str)):
        raise ValueError("its name or its title is no text")
    return Summary(name, title, roots, hashlib.sha256(content).hexdigest(), embedded)
