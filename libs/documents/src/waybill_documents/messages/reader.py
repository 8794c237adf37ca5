"""What a reader sees: a finding as a sentence in their language, and values by the titles the mapping gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from waybill_documents.messages.message import DocumentMessage
from waybill_documents.messages.sentences import Titles, name_as_words

if TYPE_CHECKING:
    from waybill_documents.faults import Finding
    from waybill_documents.mapping.loader import LoadedMapping

_INDEX = re.compile(r"\[[0-9*]+\]")


def tell(finding: Finding | Mapping[str, Any], language: str, loaded: LoadedMapping | None = None) -> str:
    """The sentence of a finding, given as it is or as its JSON.

    The mapping's own words are used if there are any. With the mapping at hand, values are called by its titles. A
    finding without a key (release 0.1.0 stored none), or with one that the language does not have, is told in English.
    """
    message = _message(finding) if isinstance(finding, Mapping) else finding.says
    if language == "en":
        return message.english
    said = message.in_language(language, _titles(loaded, language))
    if message.key is None:
        return said
    return said[:1].upper() + said[1:] if said.endswith(".") else said


def describe(loaded: LoadedMapping, path: str, language: str) -> str:
    """What a person calls a value: `lines[3].tax_base` is “Tax base”, or its title in the mapping in that language.

    Takes paths as findings and checks have them, and rules as provenance has them: `lines[*].amount`,
    `checks.subtotal`, `tables.lines.columns.amount`.
    """
    name = _plain_path(path)
    title: Mapping[Any, str] = loaded.mapping.titles.get(name, {})
    return title.get(language) or title.get("en") or readable(name)


def readable(name: str) -> str:
    """A name as words: `lines.tax_base` is “Tax base”."""
    words = name_as_words(name)
    return words[:1].upper() + words[1:]


def _message(finding: Mapping[str, Any]) -> DocumentMessage:
    key, params = finding.get("key"), finding.get("params")
    return DocumentMessage.stored(
        str(finding.get("message", "")),
        key if isinstance(key, str) else None,
        params if isinstance(params, dict) else {},
    )


def _titles(loaded: LoadedMapping | None, language: str) -> Titles:
    """What values are called within a sentence. A column may be named without its table, as formulas do."""
    known = loaded.mapping.titles if loaded is not None else {}
    columns = {path.rpartition(".")[2]: path for path in known if not path.startswith("checks.")}

    def title(path: str) -> str:
        plain = _plain_path(path)
        found = plain if plain in known else columns.get(plain)
        if loaded is None or found is None:
            return name_as_words(plain)
        said = describe(loaded, found, language)
        return said if said[1:2].isupper() else said[:1].lower() + said[1:]  # NPWP stays NPWP

    return title


def _plain_path(path: str) -> str:
    """A path or a rule as titles name it: `lines.amount`."""
    parts = _INDEX.sub("", path).split(".")
    if parts[0] in ("fields", "computed") and len(parts) == 2:
        return parts[1]
    if parts[0] == "tables" and len(parts) in (2, 4):
        return ".".join(parts[1::2])
    return ".".join(parts)
