"""What a mapping file gets wrong about the language, in words for the person who writes it.

Pydantic finds the mistakes and says them for programmers; here they are said for everybody else, all of them at once.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from waybill_documents.faults import MappingFault
from waybill_documents.mapping.model import Mapping

_MOST = 20
_KEY = "[key]"
"""How pydantic says that it is about a key and not about its value."""


def mistakes(error: ValidationError) -> MappingFault:
    """One fault with the others in it, in the order of the language."""
    first, *others = [
        MappingFault(_sentence(detail), ".".join(str(part) for part in _where(detail)) or None)
        for detail in error.errors(include_url=False)
    ]
    return MappingFault(first.message, first.where, more=tuple(others[: _MOST - 1]))


def _where(detail: ErrorDetails) -> tuple[int | str, ...]:
    path = tuple(part for part in detail["loc"] if part != _KEY)
    return path[:-1] if detail["type"] == "missing" else path  # what is missing has no place, its parent has


def _sentence(detail: ErrorDetails) -> str:
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    key = str(detail["loc"][-1]) if detail["loc"] else ""
    if kind == "extra_forbidden":
        return _unknown(key, detail["loc"][:-1])
    if kind == "missing":
        return f"'{key}' is missing"
    if key == _KEY:
        return _SHAPES.get(context.get("pattern", ""), _A_NAME)
    if kind == "literal_error":
        return f"must be {context.get('expected')}, not {_shown(given)}"
    if kind == "string_pattern_mismatch":
        return f"{_SHAPES.get(context.get('pattern', ''), 'has a form that is not understood')}, not {_shown(given)}"
    if kind in _PLAIN:
        return f"must be {_PLAIN[kind]}, not {_shown(given)}"
    message = detail["msg"].removeprefix("Value error, ")
    for technical in ("Input should be", "String should", "Tuple should", "Dictionary should"):
        if message.startswith(technical):
            rest = message.removeprefix(technical).strip()
            return f"must {'be ' if technical == 'Input should be' else ''}{rest}, not {_shown(given)}"
    return message


_A_NAME = "a name begins with a small letter and has small letters, digits and _ only, 64 at most"
_SHAPES = {
    r"^[a-z][a-z0-9_]{0,63}$": _A_NAME,
    r"^[a-z][a-z0-9_]{0,63}(\.[a-z][a-z0-9_]{0,63})?$": "a title is of a name such as 'net' or 'lines.amount'",
    r"^[1-9][0-9]?(-([1-9][0-9]?)?)?$": "must be a line or lines such as '1', '2-4' or '2-'",
    r"^([A-Za-z_][\w.-]*:)?[A-Za-z_][\w.-]*$": "must be the name of an XML element",
}
_PLAIN = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "an object in { }",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "model_attributes_type": "an object in { }",
    "model_type": "an object in { }",
    "string_type": "a text in quotes",
    "tuple_type": "a list in [ ]",
}


def _unknown(key: str, parents: tuple[int | str, ...]) -> str:
    known = _keys(parents)
    near = get_close_matches(key, known, n=1)
    if near:
        return f"there is no '{key}' here; did you mean '{near[0]}'?"
    return f"there is no '{key}' here; there is {', '.join(known)}" if known else f"there is no '{key}' here"


def _keys(path: tuple[int | str, ...]) -> list[str]:
    """The keys that the language has at this place."""
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
    """What a reference refers to; of alternatives, the one that has keys."""
    for alternative in node.get("anyOf", ()):
        found = _resolved(alternative, whole)
        if found.keys() & {"properties", "patternProperties", "items"}:
            return found
    if "$ref" in node:
        return _resolved(whole["$defs"][node["$ref"].rpartition("/")[2]], whole)
    return node


def _shown(given: Any) -> str:
    if isinstance(given, dict):
        return "an object"
    if isinstance(given, list | tuple):
        return "a list"
    if isinstance(given, bool) or given is None:
        return str(given).lower() if given is not None else "null"
    text = str(given)
    short = text if len(text) <= 40 else text[:39] + "…"
    return f"'{short}'" if isinstance(given, str) else short
