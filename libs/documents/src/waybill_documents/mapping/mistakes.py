"""Explains what a mapping file gets wrong about the language to the person who writes it.

Pydantic finds the mistakes, but words them for programmers. Here they get messages of our own, all of them at once.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from waybill_documents.faults import MappingFault
from waybill_documents.mapping.model import Mapping
from waybill_documents.messages import DocumentMessage, Mistake

_MOST = 20
_KEY = "[key]"
"""Pydantic's mark for an error about a key instead of its value."""


def mistakes(error: ValidationError) -> MappingFault:
    """One fault for the first mistake, with the others attached, in the order of the language."""
    first, *others = [
        MappingFault(_message(detail), ".".join(str(part) for part in _where(detail)) or None)
        for detail in error.errors(include_url=False)
    ]
    return MappingFault(first.says, first.where, more=tuple(others[: _MOST - 1]))


def _where(detail: ErrorDetails) -> tuple[int | str, ...]:
    path = tuple(part for part in detail["loc"] if part != _KEY)
    return path[:-1] if detail["type"] == "missing" else path  # a missing key has no place, but its parent has


def _message(detail: ErrorDetails) -> DocumentMessage:
    kind, given, context = detail["type"], _shown(detail["input"]), detail.get("ctx", {})
    key = str(detail["loc"][-1]) if detail["loc"] else ""
    if isinstance(mistake := context.get("error"), Mistake):
        return mistake.says
    if kind == "extra_forbidden":
        return _unknown(key, detail["loc"][:-1])
    if kind == "missing":
        return DocumentMessage("mapping.key_missing", name=key)
    if key == _KEY:
        return _SHAPES.get(context.get("pattern", ""), DocumentMessage("mapping.shape.name"))
    if kind == "literal_error":
        return DocumentMessage("mapping.literal", expected=context.get("expected"), given=given)
    if kind == "string_pattern_mismatch":
        shape = _SHAPES.get(context.get("pattern", "")) or DocumentMessage("mapping.shape.unknown")
        return DocumentMessage("mapping.wrong_shape", shape=shape, given=given)
    if kind in _TYPES:
        return DocumentMessage("mapping.wrong_type", type=_TYPES[kind], given=given)
    # Pydantic's remaining sentences are about lengths and sizes; they stay in English.
    message = detail["msg"]
    for technical in ("Input should be", "String should", "Tuple should", "Dictionary should"):
        if message.startswith(technical):
            rest = message.removeprefix(technical).strip()
            detail_ = f"be {rest}" if technical == "Input should be" else rest
            return DocumentMessage("mapping.must", detail=detail_, given=given)
    return DocumentMessage("mapping.invalid", detail=message.removeprefix("Value error, "))


_SHAPES = {
    r"^[a-z][a-z0-9_]{0,63}$": DocumentMessage("mapping.shape.name"),
    r"^[a-z][a-z0-9_]{0,63}(\.[a-z][a-z0-9_]{0,63})?$": DocumentMessage("mapping.shape.title"),
    r"^[1-9][0-9]?(-([1-9][0-9]?)?)?$": DocumentMessage("mapping.shape.lines"),
    r"^([A-Za-z_][\w.-]*:)?[A-Za-z_][\w.-]*$": DocumentMessage("mapping.shape.element"),
}
_TYPES = {
    "bool_parsing": DocumentMessage("mapping.type.boolean"),
    "bool_type": DocumentMessage("mapping.type.boolean"),
    "dict_type": DocumentMessage("mapping.type.object"),
    "int_from_float": DocumentMessage("mapping.type.whole_number"),
    "int_parsing": DocumentMessage("mapping.type.whole_number"),
    "int_type": DocumentMessage("mapping.type.whole_number"),
    "model_attributes_type": DocumentMessage("mapping.type.object"),
    "model_type": DocumentMessage("mapping.type.object"),
    "string_type": DocumentMessage("mapping.type.text"),
    "tuple_type": DocumentMessage("mapping.type.list"),
}


def _unknown(key: str, parents: tuple[int | str, ...]) -> DocumentMessage:
    known = _keys(parents)
    near = get_close_matches(key, known, n=1)
    if near:
        return DocumentMessage("mapping.misspelt_key", name=key, meant=near[0])
    return DocumentMessage("mapping.unknown_key", name=key, known=", ".join(known) or None)


def _keys(path: tuple[int | str, ...]) -> list[str]:
    """The keys that the language allows at this place."""
    whole = Mapping.model_json_schema()
    node: dict[str, Any] = whole
    for step in path:
        node = _resolved(node, whole)
        by_pattern = next(iter(node.get("patternProperties", {}).values()), None)
        node = node.get("properties", {}).get(step) or by_pattern or node.get("items") or {}
        if not isinstance(node, dict):
            return []
    return list(_resolved(node, whole).get("properties", {}))


def _resolved(node: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """The target of a reference; among alternatives, the one with keys."""
    for alternative in node.get("anyOf", ()):
        found = _resolved(alternative, whole)
        if found.keys() & {"properties", "patternProperties", "items"}:
            return found
    if "$ref" in node:
        return _resolved(whole["$defs"][node["$ref"].rpartition("/")[2]], whole)
    return node


def _shown(given: Any) -> str | DocumentMessage:
    if isinstance(given, dict):
        return DocumentMessage("json.an_object")
    if isinstance(given, list | tuple):
        return DocumentMessage("json.a_list")
    if isinstance(given, bool) or given is None:
        return str(given).lower() if given is not None else "null"
    text = str(given)
    short = text if len(text) <= 40 else text[:39] + "…"
    return f"'{short}'" if isinstance(given, str) else short
