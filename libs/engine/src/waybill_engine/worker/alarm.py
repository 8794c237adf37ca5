"""Being there when something is due: asleep until then, awake at once when somebody says that it is sooner."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Never


class Alarm:
    def __init__(self) -> None:
        self._due_at = math.inf
        self._wake = asyncio.Event()

    def due_in(self, seconds: float | None) -> None:
        """Something is due in so many seconds; be there. None: nothing is."""
        if seconds is None:
            return
        # A touch late rather than a touch early: early would mean asking twice.
        due_at = asyncio.get_running_loop().time() + (seconds + 0.001 if seconds > 0 else 0.0)
        if due_at < self._due_at:
            self._due_at = due_at
            self._wake.set()

    async def keep(self, see_to_it: Callable[[], Awaitable[float | None]]) -> Never:
        """For ever: see to what is due, which answers in how many seconds the next is."""
        loop = asyncio.get_running_loop()
        while True:
            while (left := self._due_at - loop.time()) > 0:
                self._wake.clear()
                try:
                    async with asyncio.timeout(None if left == math.inf else left):
                        await self._wake.wait()
                except TimeoutError:
                    break
            self._due_at = math.inf  # what is announced from here on may have come too late for the question
            self.due_in(await see_to_it())
