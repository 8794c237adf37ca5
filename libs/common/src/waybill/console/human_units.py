"""Formats times and amounts for people (`3 min ago`), and parses durations that people type (`30d`)."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import pairwise

_UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
_TYPED = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)?", re.ASCII)
_LONGEST = 100 * 365 * 86400.0
"""A century. More is a typing mistake, and timestamps would soon overflow."""


def duration(seconds: float) -> str:
    """At most two units: `340 ms`, `3.2 s`, `4 min 10 s`, `2 d 3 h`."""
    seconds = max(seconds, 0.0)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    for (name, size), (smaller, smaller_size) in pairwise(_UNITS):
        if whole >= size:
            count, rest = divmod(whole, int(size))
            also = rest // int(smaller_size)
            return f"{count} {name} {also} {smaller}" if also else f"{count} {name}"
    return f"{whole} s"


def ago(moment: datetime | None, now: datetime) -> str:
    """The distance to a moment in one unit: `3 min ago`, `in 20 s`, `just now`. Empty for None."""
    if moment is None:
        return ""
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 1:
        return "just now" if seconds >= 0 else "in a moment"
    if seconds > 0:
        name, size = next(unit for unit in _UNITS if seconds >= unit[1])
        return f"{seconds // size:.0f} {name} ago"
    # A job that was just delayed by an hour is due in an hour, not in 59 minutes.
    name, size = next(unit for unit in _UNITS if -seconds >= 0.99 * unit[1])
    return f"in {-seconds / size:.0f} {name}"


def moment(value: datetime) -> str:
    """A point in time with milliseconds, in UTC."""
    return f"{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03} UTC"


def size(count: int) -> str:
    """Bytes: `512 B`, `12.3 kB`."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:.1f} TB"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 job`, `1,234 jobs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def parse_duration(text: str, *, unit_required: bool = False) -> float:
    """Seconds from `90`, `90s`, `15m`, `12h`, `30d` or `2w`. Raises ValueError with a message for people."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or (unit_required and match[2] is None):
        raise ValueError(f"{text!r} is not a duration; write it with a unit, like 45s, 15m, 12h, 30d or 2w")
    seconds = float(match[1]) * _TYPED[match[2] or "s"]
    if seconds > _LONGEST:
        raise ValueError(f"{text!r} is more than a hundred years")
    return seconds
