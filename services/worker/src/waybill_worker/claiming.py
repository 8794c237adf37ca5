"""Taking jobs: as many as there are free slots, plus a few milliseconds of work when jobs are tiny.

More would starve other workers and hurt at shutdown. Idle, it waits for a notification, with a slow poll as the net.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from waybill.db import Database
from waybill.jobs import Lease
from waybill.jobs.claim import claim, claim_isolated
from waybill_worker.bench import Bench
from waybill_worker.outages import DatabaseHealth

_AHEAD = 0.010
"""Seconds of work to hold in advance."""
_MOST_AHEAD = 1000
_MOST_UNWRITTEN = 5000
"""Completions that wait to be written before no more work is taken on."""
_SECOND_LOOK = 0.03
"""Seconds after which a claim that came back short is tried once more."""


class Claimer:
    def __init__(
        self,
        db: Database,
        health: DatabaseHealth,
        bench: Bench,
        *,
        queues: Sequence[str],
        kinds: Sequence[str],
        poll_interval: float,
        isolating: bool = False,
    ) -> None:
        self._db = db
        self._health = health
        self._bench = bench
        self._queues = list(queues)
        self._kinds = list(kinds)
        self._poll_interval = poll_interval
        self._isolating = isolating
        self._wake = asyncio.Event()
        self._stopping = False

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        """Claim no more. A claim that is under way is not torn up: its answer says what there is to give back."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Claim for ever; when isolating, until no suspect is left."""
        told = True
        while not self._stopping:
            self._wake.clear()
            wanted = self._wanted()
            if wanted > 0:
                got = await self._claim(wanted)
                if len(got) == wanted or self._stopping:
                    continue
                if self._isolating and not got:
                    return
                if told:
                    # Another worker's claim may hold rows it will not take; have a second look before the long wait.
                    told = await self._woken_within(_SECOND_LOOK)
                    continue
            told = await self._woken_within(self._poll_interval)

    async def _woken_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False  # time for a look without being told
        return True

    def _wanted(self) -> int:
        ahead = 0 if self._isolating else int(self._bench.concurrency * _AHEAD / max(self._bench.typical, 1e-6))
        ahead = min(ahead, _MOST_AHEAD)
        free = self._bench.concurrency + ahead - len(self._bench)
        # Topping up job by job would cost a statement each; wait until half of the stock is used.
        if len(self._bench.completions) > _MOST_UNWRITTEN:
            return 0
        return free if free > ahead // 2 or len(self._bench) < self._bench.concurrency else 0

    async def _claim(self, wanted: int) -> list[Lease]:
        async def ask() -> list[Lease]:
            async with self._db.hot() as connection:
                worker_id = self._bench.worker_id
                if self._isolating:
                    leases = await claim_isolated(connection, worker_id, self._queues, self._kinds)
                else:
                    leases = await claim(connection, worker_id, self._queues, self._kinds, wanted)
            # Declared gone while the claim was on its way: these are not ours any more.
            return leases if worker_id == self._bench.worker_id else []

        # Asked again after an outage, an earlier claim whose answer was lost may still hold jobs: the heartbeat finds
        # and releases them.
        leases = await self._health.persist(ask)
        self._bench.take(leases)
        return leases
