"""Timers: one that can be moved earlier, and one that polls several parts together."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Never

_ABOUT_TO = 1.0
"""Seconds: how soon a timer is that is about to go off."""


class Timer:
    """A timer that can be moved earlier: it sleeps until something is due, and wakes up if that becomes sooner."""

    def __init__(self) -> None:
        self._due_at = math.inf
        self._wake = asyncio.Event()

    def due_in(self, seconds: float | None) -> None:
        """Go off in so many seconds, unless it goes off before that anyway. None changes nothing."""
        if seconds is None:
            return
        # A little late rather than a little early: early would mean asking twice.
        due_at = asyncio.get_running_loop().time() + (seconds + 0.001 if seconds > 0 else 0.0)
        if due_at < self._due_at:
            self._due_at = due_at
            self._wake.set()

    def postpone(self, seconds: float | None) -> None:
        """If it is about to go off or late, go off in so many seconds instead, or not at all."""
        if self._due_at <= asyncio.get_running_loop().time() + _ABOUT_TO:
            self._due_at = math.inf
        self.due_in(seconds)

    async def run(self, act: Callable[[], Awaitable[float | None]]) -> Never:
        """Call `act` whenever the timer goes off; its answer says in how many seconds the next thing is due."""
        loop = asyncio.get_running_loop()
        while True:
            while (left := self._due_at - loop.time()) > 0:
                self._wake.clear()
                with contextlib.suppress(TimeoutError):  # it may have been postponed in the meantime
                    async with asyncio.timeout(None if left == math.inf else left):
                        await self._wake.wait()
            self._due_at = math.inf  # from here on, `act` may ask too early to see what `due_in` announces
            self.due_in(await act())


@dataclass(slots=True)
class _Poll:
    poll: Callable[[], Awaitable[None]]
    interval: float
    due_at: float = 0.0


class Polls:
    """Calls several parts again and again, at the same times and one after the other.

    A statement that finds nothing costs Postgres next to nothing, but waking up one of its processes does: a process
    that slept has lost its caches. So all parts poll together and in turn. The pool lends the connection that was
    returned last, and one server process answers all of them.
    """

    def __init__(self) -> None:
        self._polls: list[_Poll] = []

    def every(self, interval: float, poll: Callable[[], Awaitable[None]]) -> None:
        """Have `poll` called every `interval` seconds. It must be quick, because the others wait for it."""
        self._polls.append(_Poll(poll, interval))

    async def run(self) -> Never:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            for one in self._polls:
                if one.due_at <= began:
                    one.due_at = began + one.interval
                    await one.poll()
            await asyncio.sleep(max(min(one.due_at for one in self._polls) - loop.time(), 0.0))
