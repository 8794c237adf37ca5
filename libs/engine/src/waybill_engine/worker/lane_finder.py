"""Keeps the worker's view of lanes and rules fresh: with every poll, and when an announcement asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from waybill.db import Database
from waybill_engine.fair_share import FairShare
from waybill_engine.lanes import LaneScan
from waybill_engine.rules import Peer
from waybill_engine.worker.database_health import DatabaseHealth

_BUSY_SHARE = 0.1
"""The share of its time that it may spend looking. That matters while vacuum cannot remove claimed jobs from the index,
because looking is slow then."""

_LONGEST_REST = 5.0
"""Seconds. A look that waited for a lock, and not for the index, must not hide jobs for minutes."""


class LaneFinder:
    def __init__(
        self,
        db: Database,
        health: DatabaseHealth,
        fair_share: FairShare,
        *,
        queues: Sequence[str],
        kinds: Sequence[str],
        isolated: bool = False,
        on_found: Callable[[], None] = lambda: None,
        on_fleet: Callable[[Sequence[Peer]], None] = lambda _: None,
    ) -> None:
        self._db = db
        self._health = health
        self._fair_share = fair_share
        self._scan = LaneScan(queues, kinds, isolated=isolated)
        self._on_found = on_found
        self._on_fleet = on_fleet
        self._requested = asyncio.Event()
        self._rests_until = 0.0
        # An older answer that comes in late would hide what a newer one has found.
        self._one_at_a_time = asyncio.Lock()

    def request(self) -> None:
        """Look soon: there is something, but the announcement did not say where."""
        self._requested.set()

    async def run(self) -> None:
        """For ever: look when requested, at all lanes there are."""
        loop = asyncio.get_running_loop()
        while True:
            await self._requested.wait()
            self._requested.clear()
            self._scan.restart()
            while True:
                await asyncio.sleep(max(self._rests_until - loop.time(), 0.0))
                await self._look_and_rest()
                if self._scan.begins_anew:
                    break

    async def poll(self) -> None:
        """Look for jobs that nobody announced: at some lanes, or at all of them if nobody announces anything."""
        if self._db.pgbouncer or self._rests_until > asyncio.get_running_loop().time():
            self.request()
        else:
            await self._look_and_rest()

    async def _look_and_rest(self) -> None:
        async with self._one_at_a_time:
            took = await self.look()
            rest = min(took * (1 / _BUSY_SHARE - 1), _LONGEST_REST)
            self._rests_until = asyncio.get_running_loop().time() + rest
        self._on_found()

    async def look(self) -> float:
        """Look now, and tell the fair share which lanes and rules there are. Returns the seconds that it took."""
        loop = asyncio.get_running_loop()

        async def find() -> float:
            async with self._db.hot() as connection:
                began = loop.time()  # not earlier: what it waited for a database that was gone is no work of anybody's
                announcements = self._fair_share.announcements
                lanes, rules = await self._scan.look(connection)
                took = loop.time() - began
            self._fair_share.apply(rules)
            self._on_fleet(rules.fleet)
            self._fair_share.found(lanes, announcements, complete=self._scan.complete)
            return took

        return await self._health.persist(find)
