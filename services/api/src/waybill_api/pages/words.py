"""Sizes, times and waits as a person would say them."""

from __future__ import annotations

from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def size(number: int) -> str:
    """`217 B`, `48 KB`, `1.4 MB`: in the units that file managers show, so that people recognise their file."""
    if number < 1000:
        return f"{number} B"
    if number < 999_500:
        return f"{number / 1000:.0f} KB"
    return f"{number / 1_000_000:.1f} MB"


def ago(moment: datetime, now: datetime) -> str:
    """`just now`, `5 min ago`, `3 h ago`, `yesterday`, then the date. `everywhere.js` says the same as time goes by."""
    seconds = (now - moment).total_seconds()
    if seconds < 45:
        return "just now"
    if seconds < 45 * _MINUTE:
        return f"{max(1, round(seconds / _MINUTE))} min ago"
    if seconds < 22 * _HOUR:
        return f"{max(1, round(seconds / _HOUR))} h ago"
    days = round(seconds / _DAY)
    if days <= 1:
        return "yesterday"
    return f"{days} days ago" if days < 7 else f"{moment.astimezone(UTC):%-d %b %Y}"


def exactly(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%-d %B %Y, %H:%M:%S} UTC"


def wait(seconds: float) -> str:
    """How long something takes, roughly: nobody wants to read 73 seconds."""
    if seconds < _MINUTE:
        return f"{max(1, round(seconds))} s"
    if seconds < _HOUR:
        return f"{round(seconds / _MINUTE)} min"
    return f"{round(seconds / _HOUR)} h"


def count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
