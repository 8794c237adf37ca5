"""Text that Postgres can store: UTF-8 without NUL characters.

Text from documents, libraries and other servers may be neither. We refuse such text from callers (`is_storable`), and
replace what cannot be stored in our own error messages (`storable`), because a failure must always be recorded.
"""

from __future__ import annotations

import math
from typing import Any


def is_storable(text: str) -> bool:
    return "\0" not in text and (text.isascii() or not _has_half_characters(text))


def storable(text: str) -> str:
    """The text, with replacements for what cannot be stored."""
    return text if is_storable(text) else text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def storable_json(value: Any) -> Any:
    """Any value as JSON that Postgres accepts: texts are storable, numbers finite, everything else is its text."""
    if isinstance(value, str):
        return storable(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {storable(str(name)): storable_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [storable_json(item) for item in value]
    return storable(str(value))


def _has_half_characters(text: str) -> bool:
    """Python strings may contain halves of surrogate pairs, which cannot be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def as_object(detail: object) -> dict[str, Any]:
    """What a column of details has: an object, or an empty one if somebody wrote something else there by hand."""
    return detail if isinstance(detail, dict) else {}
