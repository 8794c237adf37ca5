"""How long the supervisor waits before it starts again what has died: longer each time, until there was a calm minute.

The longest pause is short. What is killed again and again, by a person or by a machine without memory, should be back
within seconds once that is over, and a start every few seconds costs little.
"""

from __future__ import annotations

FIRST, LONGEST = 0.5, 5.0
CALM = 60.0
"""Seconds of life after which earlier deaths no longer count."""


class Pauses:
    def __init__(self) -> None:
        self._next = FIRST

    def after(self, lived: float) -> float:
        """The pause after something has died that lived for so many seconds."""
        if lived >= CALM:
            self._next = FIRST
        pause = self._next
        self._next = min(pause * 2, LONGEST)
        return pause
