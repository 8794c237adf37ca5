"""A finding as a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from waybill_documents.faults import Finding
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.messages.indonesian import in_indonesian
from waybill_documents.messages.names import describe, plain_path

Language = Literal["en", "id"]
LANGUAGES: tuple[Language, ...] = ("en", "id")


def tell(finding: Finding | dict[str, Any], language: str, loaded: LoadedMapping | None = None) -> str:
    """The finding's sentence, given as it is or as its JSON. In English it is its `message`.

    The mapping's own words go first. With the mapping at hand, values are called by its titles. What cannot be said
    in the language is said in English rather than not at all.
    """
    given = finding.to_json() if isinstance(finding, Finding) else finding
    message = str(given.get("message", ""))
    if language != "id":
        return message
    params = given.get("params")
    params = params if isinstance(params, dict) else {}
    messages = params.get("messages")
    if isinstance(messages, dict) and isinstance(messages.get(language), str):
        return str(messages[language])
    said = in_indonesian(given, params, _names(loaded, language)) or message
    return said[:1].upper() + said[1:] if said.endswith(".") else said


def _names(loaded: LoadedMapping | None, language: str) -> Callable[[str], str]:
    """What a value is called within a sentence. A column may be named without its table, as formulas do."""
    titles = loaded.mapping.titles if loaded is not None else {}
    columns = {path.rpartition(".")[2]: path for path in titles if not path.startswith("checks.")}

    def name(path: str) -> str:
        plain = plain_path(path)
        found = plain if plain in titles else columns.get(plain)
        if loaded is not None and found is not None:
            title = describe(loaded, found, language)
            return title if title[1:2].isupper() else title[:1].lower() + title[1:]  # NPWP stays NPWP
        return plain.rpartition(".")[2].replace("_", " ")

    return name
