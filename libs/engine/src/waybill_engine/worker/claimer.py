"""Taking jobs: as many as there are free slots, plus a few milliseconds of work when jobs are tiny.

More would starve other workers and hurt at shutdown. The claimer takes from the lanes that `Shares` knows of; it learns
of them by notifications, and from the lookout, whose slow rounds find whatever nobody announced.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Sequence

from waybill.db import Database
from waybill_engine import Lease
from waybill_engine.breaker import BreakerPolicy
from waybill_engine.claim import claim
from waybill_engine.fair_share import Shares
from waybill_engine.lanes import MOST_LANES, look
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.slots import Bench

_AHEAD = 0.025
"""Seconds of work to hold in advance: about what a claim of that much takes."""
_MOST_AHEAD = 2000
_MOST_UNWRITTEN = 5000
"""Completions that wait to be written before no more work is taken on."""
_ALONE_AGAIN = 0.05
"""Seconds after which a suspect that could not be had, because somebody else was at it, is tried again."""
_LOOKING = 0.1
"""The part of the time a lookout may spend looking. It matters when vacuum cannot remove what was claimed."""


class Lookout:
    """Keeps the shares' view of lanes and rules fresh: on every round, and when asked."""

    def __init__(
        self,
        db: Database,
        health: DatabaseHealth,
        shares: Shares,
        *,
        queues: Sequence[str],
        kinds: Sequence[str],
        isolated: bool = False,
        on_news: Callable[[], None] = lambda: None,
    ) -> None:
        self._db = db
        self._health = health
        self._shares = shares
        self._queues = queues
        self._kinds = kinds
        self._isolated = isolated
        self._on_news = on_news
        self._asked = asyncio.Event()
        self._rested_at = 0.0
        # An older answer that comes in late would hide what a newer one has found.
        self._one_at_a_time = asyncio.Lock()

    def ask(self) -> None:
        """Somebody said that there is something, but not where."""
        self._asked.set()

    async def run(self) -> None:
        """Look when asked."""
        loop = asyncio.get_running_loop()
        while True:
            await self._asked.wait()
            await asyncio.sleep(max(self._rested_at - loop.time(), 0.0))
            await self._look_around()

    async def on_round(self) -> None:
        """Look for what nobody announced."""
        if self._rested_at <= asyncio.get_running_loop().time():
            await self._look_around()
        else:
            self.ask()

    async def _look_around(self) -> None:
        loop = asyncio.get_running_loop()
        async with self._one_at_a_time:
            self._asked.clear()
            began = loop.time()
            await self.look()
            self._rested_at = loop.time() + (loop.time() - began) * (1 / _LOOKING - 1)
        self._on_news()

    async def look(self) -> None:
        async def ask() -> None:
            async with self._db.hot() as connection:
                news = self._shares.news
                lanes, rules = await look(connection, self._queues, self._kinds, isolated=self._isolated)
            self._shares.rule(rules)
            self._shares.seen(lanes, news, complete=len(lanes) < MOST_LANES)

        await self._health.persist(ask)


class Claimer:
    def __init__(
        self,
        db: Database,
        health: DatabaseHealth,
        bench: Bench,
        shares: Shares,
        policy: BreakerPolicy,
        *,
        poll_interval: float,
        isolating: Lookout | None = None,
    ) -> None:
        self._db = db
        self._health = health
        self._bench = bench
        self._shares = shares
        self._policy = policy
        self._poll_interval = poll_interval
        self._isolating = isolating
        self._wake = asyncio.Event()
        self._stopping = False

    def wake(self) -> None:
        self._wake.set()

    def room(self) -> None:
        """Ends of runs were written: what was closed may be open again."""
        self._shares.reopen()
        self._wake.set()

    def stop(self) -> None:
        """Claim no more. A claim that is under way is not torn up: its answer says what there is to give back."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Claim for ever; when isolating, until no suspect is left."""
        loop = asyncio.get_running_loop()
        while not self._stopping:
            self._wake.clear()
            wanted = self._wanted()
            patience = self._poll_interval  # with full hands, until there is room
            if wanted > 0:
                if self._isolating is not None:
                    await self._isolating.look()
                    if not len(self._shares):
                        return
                if self._shares.any_open(loop.time()):
                    if not await self._claim(wanted) and self._isolating is not None:
                        await asyncio.sleep(_ALONE_AGAIN)
                    continue
                opening = self._shares.next_opening(loop.time())
                if opening is not None:
                    patience = min(patience, opening - loop.time())
            await self._woken_within(patience)

    async def _woken_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _wanted(self) -> int:
        if len(self._bench.completions) > _MOST_UNWRITTEN:
            return 0
        ahead = int(self._bench.concurrency * _AHEAD / max(self._bench.typical, 1e-6))
        ahead = 0 if self._isolating else min(ahead, _MOST_AHEAD)
        free = self._bench.concurrency + ahead - len(self._bench)
        # Topping up job by job would cost a statement each; wait until half of the stock is used. Not all of it: the
        # rest lasts until the claim is back.
        if free > ahead // 2 or len(self._bench) < self._bench.concurrency:
            return free
        self._bench.low = len(self._bench.waiting) // 2  # a good time to ask again, though runs take longer or shorter
        return 0

    async def _claim(self, wanted: int) -> list[Lease]:
        async def ask() -> list[Lease]:
            async with self._db.hot() as connection:
                worker_id = self._bench.worker_id
                leases = await claim(
                    connection,
                    worker_id,
                    self._shares,
                    wanted,
                    policy=self._policy,
                    isolated=self._isolating is not None,
                    clock=asyncio.get_running_loop().time,
                )
                if not self._db.pgbouncer:  # behind it, the claim is committed with the connection's return
                    self._take(leases, worker_id)
            if self._db.pgbouncer:
                self._take(leases, worker_id)
            return leases

        # Asked again after an outage, an earlier claim whose answer was lost may still hold jobs: the heartbeat finds
        # and releases them.
        return await self._health.persist(ask)

    def _take(self, leases: list[Lease], worker_id: uuid.UUID) -> None:
        # Declared gone while the claim was on its way: these are not ours any more.
        if worker_id == self._bench.worker_id:
            self._bench.take(leases)
