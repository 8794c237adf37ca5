"""Makes log lines safe: only plain values, no secrets, limited length, and no exceptions while logging.

These are the last steps before a line is rendered. They see every line of every library.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Set
from datetime import date
from enum import Enum
from itertools import islice
from pathlib import PurePath
from typing import Any
from uuid import UUID

from structlog.typing import EventDict, WrappedLogger

from waybill.redaction import MASK, is_secret_key, redact_text

_MOST_TEXT = 20_000
_MOST_ITEMS = 200
_DEEPEST = 8

_FIRST = ("timestamp", "level", "service", "logger", "event")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain_values(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Turn every value into one that JSON has, and mask secrets."""
    return {_text(key): _under(key, value, 0) for key, value in event.items()}


def without_control_characters(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape control characters, so that text from a document cannot control the reader's terminal."""
    return {key: _escaped(value) if isinstance(value, str) else value for key, value in event.items()}


def as_json(event: EventDict, **_options: Any) -> str:
    """One line of JSON that starts with the most important fields. `plain_values` has made every value safe."""
    first = {name: event[name] for name in _FIRST if name in event}
    return json.dumps({**first, **event}, separators=(",", ":"), default=_shown)


def _under(key: object, value: object, depth: int) -> Any:
    # None and booleans are not secret, and are often what people look for
    if value is None or isinstance(value, bool):
        return value
    if isinstance(key, str) and is_secret_key(key):
        return MASK
    return _plain(value, depth)


def _plain(value: object, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return _plain(value.value, depth)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping | list | tuple | Set):
        return _collection(value, depth)
    return _text(_shown(value))


def _collection(value: Mapping[Any, Any] | list[Any] | tuple[Any, ...] | Set[Any], depth: int) -> Any:
    if depth >= _DEEPEST:
        return "…"
    try:
        if isinstance(value, Mapping):
            pairs = islice(value.items(), _MOST_ITEMS)
            return {_text(key): _under(key, item, depth + 1) for key, item in pairs}
        return [_plain(item, depth + 1) for item in islice(value, _MOST_ITEMS)]
    except Exception:  # noqa: BLE001 - a foreign object may raise anything, but logging must not
        return _text(_shown(value))


def _text(value: object) -> str:
    text = redact_text(value if isinstance(value, str) else _shown(value))
    # Cut after masking, because a password in half a URL would not be recognised.
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}… ({len(text)} characters)"


def _shown(value: object) -> str:
    try:
        if isinstance(value, date):
            return value.isoformat()
        return str(value) if isinstance(value, UUID | PurePath | str) else repr(value)
    except Exception:  # noqa: BLE001 - see above
        return f"<{type(value).__name__} that cannot be shown>"


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
