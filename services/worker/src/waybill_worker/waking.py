"""Being there when something is due: asleep until then, awake at once when somebody says that it is sooner."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Never


class Alarm:
    def __init__(self, poll_interval: float) -> None:
        self._poll_interval = poll_interval
        self._due_at = 0.0
        self._wake = asyncio.Event()

    def due_in(self, seconds: float) -> None:
        """Something is due in so many seconds; be there."""
        due_at = asyncio.get_running_loop().time() + max(seconds, 0.0)
        if due_at < self._due_at:
            self._due_at = due_at
            self._wake.set()

    async def keep(self, see_to_it: Callable[[], Awaitable[float | None]]) -> Never:
        """For ever: see to what is due, which answers in how many seconds the next is, and sleep until then.

        Never for longer than the poll interval: whoever should have said something may not have been heard.
        """
        loop = asyncio.get_running_loop()
        while True:
            self._due_at = math.inf  # what is announced from here on may have come too late for the question
            next_in = await see_to_it()
            # A touch late rather than a touch early: early would mean asking twice.
            wait = self._poll_interval if next_in is None else min(self._poll_interval, next_in + 0.001)
            self._due_at = min(self._due_at, loop.time() + wait)
            while (left := self._due_at - loop.time()) > 0:
                self._wake.clear()
                try:
                    async with asyncio.timeout(left):
                        await self._wake.wait()
                except TimeoutError:
                    break
