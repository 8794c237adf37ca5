"""Windows of a table's lines. The page sends one of them, and the rest when somebody scrolls there or asks for it."""

from __future__ import annotations

import re
from typing import NamedTuple

LINES = 30
"""Lines in a window: more than a screen shows, and few enough for any browser."""

_PATH = re.compile(r"([a-z][a-z0-9_]{0,63})\[(\d{1,7})\]", re.ASCII)


class Window(NamedTuple):
    table: str
    first: int
    """The index of its first line."""

    @property
    def path(self) -> str:
        return f"{self.table}[{self.first}]"


def window_of(path: str) -> Window | None:
    """The window of a line or a value in a line; None for the path of anything else."""
    found = _PATH.match(path)
    return None if found is None else Window(found[1], int(found[2]) // LINES * LINES)


def windows_of(*paths: str) -> frozenset[Window]:
    return frozenset(window for path in paths if (window := window_of(path)) is not None)
