"""Lets owners take turns at work that only a few requests may do at once.

An owner never has all places, so that a newcomer finds one soon, and owners who wait are served in turn: somebody who
asks once does not wait behind forty requests of somebody else. What waits is bounded for each owner and in all, and a
request that is given up leaves the line.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from waybill.errors import RateLimited
from waybill.messages import msg
from waybill.telemetry.metrics import RATE_LIMITED

_LONGEST_WAIT = 30
"""Seconds; the most that `Retry-After` asks for."""


class Overloaded(RateLimited):
    """Everybody together asks for too much at the moment."""

    status = 503


class FairPlaces:
    def __init__(self, places: int, *, waiting_per_owner: int, waiting: int) -> None:
        self._free = places
        self._places = places
        self._at_once = max(1, places - 1)
        """Places that one owner may have at once."""
        self._most_per_owner = waiting_per_owner
        self._most = waiting
        self._running: Counter[str] = Counter()
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """Who waits, by owner. The owner at the front is served next."""
        self._average = 0.5

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self._lines.values())

    @property
    def running(self) -> int:
        return self._places - self._free

    @asynccontextmanager
    async def take(self, owner: str) -> AsyncIterator[None]:
        """Wait for a place. RateLimited if too many of this owner's requests wait, Overloaded if too many of all do."""
        await self._enter(owner)
        begun = time.monotonic()
        try:
            yield
        finally:
            self._average += 0.1 * (time.monotonic() - begun - self._average)
            self._give_back(owner)

    async def _enter(self, owner: str) -> None:
        line = self._lines.get(owner)
        if line is not None and len(line) >= self._most_per_owner:
            RATE_LIMITED.labels("at_once").inc()
            raise RateLimited(msg("request.too_many_at_once"), retry_after=self._wait(len(line) / self._at_once))
        if self.waiting >= self._most:
            raise Overloaded(msg("request.busy"), retry_after=self._wait(self.waiting / self._places))
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(owner, deque()).append(turn)
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(owner, turn)
            else:  # its turn came at the same moment
                self._give_back(owner)
            raise

    def _wait(self, turns: float) -> float:
        return min(_LONGEST_WAIT, max(1, math.ceil(turns * self._average)))

    def _leave(self, owner: str, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(owner)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._lines[owner]

    def _give_back(self, owner: str) -> None:
        self._free += 1
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        self._serve()

    def _serve(self) -> None:
        for owner in list(self._lines):
            if not self._free:
                return
            if self._running[owner] < self._at_once:
                self._let_in(owner)

    def _let_in(self, owner: str) -> None:
        line = self._lines[owner]
        while line:
            turn = line.popleft()
            if not turn.done():  # otherwise it was given up just now
                turn.set_result(None)
                self._free -= 1
                self._running[owner] += 1
                break
        if line:
            self._lines.move_to_end(owner)
        else:
            del self._lines[owner]
