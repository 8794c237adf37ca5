"""What a parser says about its stages, checked. A parser that a document has taken over may say anything.

The names are on a list, and the times are numbers within the parse, so that nothing of a document gets into a header, a
log line, a metric or a span in this way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from waybill_documents.stages import NAMES

_LONGEST = 86_400.0


class StageTime(NamedTuple):
    name: str
    seconds: float
    """How long it worked. A stage that runs page by page works only a part of the time between begin and end."""
    begin: float
    """Seconds since the parse began."""
    end: float


def stage_times(note: Mapping[str, Any], within: float) -> list[StageTime]:
    """The stages in a parser's note about a parse that took `within` seconds, in the order of the note."""
    spent, extents = note.get("stages"), note.get("extents")
    if not isinstance(spent, dict):
        return []
    found = []
    for name, milliseconds in spent.items():
        if name not in NAMES or not _is_time(milliseconds):
            continue
        seconds = min(milliseconds / 1000, _LONGEST)
        begin, end = _extent(extents, name, seconds)
        found.append(StageTime(name, seconds, min(begin, within), min(max(begin, end), within)))
    return found


def _extent(extents: Any, name: str, seconds: float) -> tuple[float, float]:
    given = extents.get(name) if isinstance(extents, dict) else None
    if isinstance(given, list) and len(given) == 2 and all(_is_time(each) for each in given):
        return given[0], given[1]
    return 0.0, seconds


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
