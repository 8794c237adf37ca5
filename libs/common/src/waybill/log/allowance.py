"""How many lines an event may have in a second, for events that somebody else decides how often they happen."""

from __future__ import annotations

import time
from collections.abc import Callable


class LineAllowance:
    def __init__(self, per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._second = 0
        self._left = 0
        self._unsaid = 0

    def take(self) -> int | None:
        """None if this line must be left out; else how many were left out before it."""
        second = int(self._clock())
        if second != self._second:
            self._second, self._left = second, self._per_second
        if not self._left:
            self._unsaid += 1
            return None
        self._left -= 1
        unsaid, self._unsaid = self._unsaid, 0
        return unsaid
