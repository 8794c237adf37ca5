"""What values, tables and checks are called: by the mapping's titles, or by their names as words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from waybill_documents.mapping.loader import LoadedMapping

_INDEX = re.compile(r"\[[0-9*]+\]")


def describe(loaded: LoadedMapping, path: str, language: str) -> str:
    """What a person calls a value: `lines[3].tax_base` is “Tax base”, or what the mapping calls it in the language.

    Takes paths as findings and checks have them, and rules as provenance has them: `lines[*].amount`,
    `checks.subtotal`, `tables.lines.columns.amount`.
    """
    name = plain_path(path)
    title: Mapping[Any, str] = loaded.mapping.titles.get(name, {})
    return title.get(language) or title.get("en") or readable(name)


def plain_path(path: str) -> str:
    """A path or a rule as titles name it: `lines.amount`."""
    parts = _INDEX.sub("", path).split(".")
    if parts[0] in ("fields", "computed") and len(parts) == 2:
        return parts[1]
    if parts[0] == "tables" and len(parts) in (2, 4):
        return ".".join(parts[1::2])
    return ".".join(parts)


def readable(name: str) -> str:
    """A name as words: `lines.tax_base` is Tax base."""
    words = name.rpartition(".")[2].replace("_", " ")
    return words[:1].upper() + words[1:]
