"""Names of what needs a look, each at most once and never twice at the same time.

What failed comes back later and later. All together come at a bounded pace, so that a thousand pools that change at
once do not fall upon the API server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from waybill.cluster.backoff import Backoff


class WorkQueue:
    def __init__(
        self,
        *,
        per_second: float = 20.0,
        burst: int = 50,
        first_retry: float = 0.5,
        last_retry: float = 120.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._first_retry, self._last_retry = first_retry, last_retry
        self._clock = clock
        self._tokens, self._filled_at = float(burst), clock()
        self._waiting: dict[str, None] = {}
        """In the order in which they came."""
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._later: dict[str, asyncio.TimerHandle] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, name: str) -> None:
        """It needs a look, now. If somebody looks at it at the moment, then once more after that."""
        if (timer := self._later.pop(name, None)) is not None:
            timer.cancel()
        if name in self._running:
            self._again.add(name)
            return
        self._waiting[name] = None
        self._arrived.set()

    def add_after(self, name: str, seconds: float) -> None:
        """It needs a look in so many seconds, unless it gets one sooner."""
        if name in self._waiting:
            return
        due = asyncio.get_running_loop().time() + seconds
        if (timer := self._later.get(name)) is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._later[name] = asyncio.get_running_loop().call_at(due, self.add, name)

    async def take(self) -> str:
        """The next name. `done` must be called with it."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        name = next(iter(self._waiting))
        del self._waiting[name]
        self._running.add(name)
        try:
            await self._pace()
        except asyncio.CancelledError:
            self.done(name)
            self._waiting[name] = None
            raise
        return name

    def done(self, name: str, *, failed: bool = False, retry_after: float | None = None) -> None:
        """The look has ended. If it failed, there will be another one, later than after the last failure."""
        self._running.discard(name)
        if not failed:
            self._backoffs.pop(name, None)
        if name in self._again:
            self._again.discard(name)
            self.add(name)
        elif failed:
            backoff = self._backoffs.setdefault(name, Backoff(self._first_retry, self._last_retry))
            self.add_after(name, backoff.next(retry_after))

    def forget(self, name: str) -> None:
        """It is gone."""
        self._backoffs.pop(name, None)
        self._waiting.pop(name, None)
        if (timer := self._later.pop(name, None)) is not None:
            timer.cancel()

    async def _pace(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        self._tokens -= 1
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self._per_second)
