"""Text that Postgres can keep: UTF-8 without NUL characters.

What comes from documents, libraries and other people's servers may be neither. What a caller sends is refused
(`is_storable`); what we say about a failure is mended, because a failure must always be written down.
"""

from __future__ import annotations

import math
from typing import Any


def is_storable(text: str) -> bool:
    return "\0" not in text and (text.isascii() or not _has_half_characters(text))


def storable(text: str) -> str:
    """The text, with what cannot be stored replaced."""
    return text if is_storable(text) else text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def storable_json(value: Any) -> Any:
    """Any value as JSON that Postgres takes: texts mended, numbers finite, everything else as its text."""
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
    """Python's strings may hold halves of surrogate pairs, which no encoding knows."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
