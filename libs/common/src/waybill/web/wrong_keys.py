"""How many wrong keys came from a network address, and how it is slowed down when there were too many.

A right key is never counted and never refused, whatever its neighbours send: it is looked up first. A wrong one above
the limit is refused with a 429, and the answer is held back for a moment. A program that waits for its answers can then
send no more of them than it has connections, which would otherwise keep this process from serving anybody else.

Each process counts for itself and in memory, because counting must cost less than guessing.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Callable

from waybill.errors import RateLimited
from waybill.messages import msg
from waybill.telemetry.metrics import RATE_LIMITED

PER_MINUTE = 60
"""Wrong keys that one address may send in a minute. They may come at once; after that it is one in a second."""
HELD = 1.0
"""Seconds for which an answer above the limit is held back, on average. They differ, or all would end at one moment."""
_MOST_HELD = 500
"""Answers that are held back at once. Each is a request in memory; what comes on top is answered right away."""
_MOST = 50_000
"""Addresses we remember. The one that was wrong least recently is forgotten first."""
_MINUTE = 60.0


class WrongKeys:
    def __init__(self, *, held: float = HELD, clock: Callable[[], float] = time.monotonic) -> None:
        self._held = held
        self._clock = clock
        self._holding = 0
        self._due: OrderedDict[str, float] = OrderedDict()
        """When all that an address sent would have come at the steady pace."""

    async def count(self, address: str) -> None:
        """Count a wrong key. RateLimited if too many came from its address."""
        now = self._clock()
        due = max(self._due.get(address, 0.0), now) + _MINUTE / PER_MINUTE
        wait = due - now - _MINUTE
        if wait > 0:  # asking too early costs nothing but time
            RATE_LIMITED.labels("wrong_keys").inc()
            await self._hold()
            raise RateLimited(msg("api_key.too_many_wrong"), retry_after=max(1.0, wait))
        self._due[address] = due
        self._due.move_to_end(address)
        while len(self._due) > _MOST:
            self._due.popitem(last=False)

    async def _hold(self) -> None:
        if self._holding >= _MOST_HELD:
            return
        self._holding += 1
        try:
            await asyncio.sleep(self._held * random.uniform(0.5, 1.5))  # noqa: S311 - spread, nothing secret
        finally:
            self._holding -= 1
