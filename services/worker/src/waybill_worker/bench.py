"""The jobs this worker holds: a few waiting for a slot, the rest running.

The worker's parts meet here: the claimer fills it, runs leave it, the heartbeat compares it with the database's view.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Collection, Mapping

from waybill.db import Database
from waybill.jobs import Lease
from waybill.jobs.finish import released, settle
from waybill.storage import Storage
from waybill_worker.blocking import BlockingPool
from waybill_worker.completing import Completions
from waybill_worker.context import JobContext
from waybill_worker.handling import Handler
from waybill_worker.outages import DatabaseHealth
from waybill_worker.progress import ProgressWriter
from waybill_worker.running import Run, Stop

_PATIENCE = 0.5
"""Seconds a job may wait here for a slot before another worker may have it."""


class Bench:
    def __init__(
        self,
        worker_id: uuid.UUID,
        db: Database,
        health: DatabaseHealth,
        storage: Storage,
        pool: BlockingPool,
        handlers: Mapping[str, Handler],
        concurrency: int,
    ) -> None:
        self.worker_id = worker_id
        """Under which id this process holds its jobs. Changes when it was declared gone and starts over."""
        self.concurrency = concurrency
        self.runs: dict[uuid.UUID, Run] = {}
        self.waiting: deque[Lease] = deque()
        self.completions = Completions(db, health, self)
        self.progress = ProgressWriter(db, health)
        self.on_room: Callable[[], None] = lambda: None
        """Called when a slot was freed and nothing waits for it."""
        self.typical = 1.0
        """Seconds a run takes, as a moving average. Starts high: prefetch is earned."""
        self._db = db
        self._health = health
        self._storage = storage
        self._pool = pool
        self._handlers = handlers
        self._run_ended = asyncio.Event()
        # However many runs end at once, the heartbeat always finds a connection.
        self._ends = asyncio.Semaphore(2)
        self._waiting_since = 0.0

    def __len__(self) -> int:
        return len(self.waiting) + len(self.runs)

    def known(self) -> set[uuid.UUID]:
        """The jobs this worker is aware of holding."""
        return {*self.runs, *self.completions.ids(), *(lease.id for lease in self.waiting)}

    def take(self, leases: list[Lease]) -> None:
        """Newly claimed jobs."""
        if not self.waiting:
            self._waiting_since = asyncio.get_running_loop().time()
        self.waiting.extend(leases)
        self._fill_slots()

    async def give_back_waiting(self, only: Collection[uuid.UUID] | None = None) -> None:
        """Return what has not started, untouched, so that another worker takes it at once."""
        back = [lease for lease in self.waiting if only is None or lease.id in only]
        if back:
            self.waiting = deque(lease for lease in self.waiting if lease not in back)
            await self.release({lease.id: lease.token for lease in back}, "Given back before it started.")

    async def keep_nothing_waiting(self) -> None:
        """For ever: give back what was taken ahead and did not get its turn, because a slow job came in between."""
        while True:
            await asyncio.sleep(_PATIENCE / 2)
            if self.waiting and asyncio.get_running_loop().time() - self._waiting_since > _PATIENCE:
                self.typical = max(self.typical, _PATIENCE)  # so that the next claim takes nothing ahead
                await self.give_back_waiting()

    async def release(self, tokens: Mapping[uuid.UUID, int], reason: str) -> None:
        ends = [(job_id, token, released(reason)) for job_id, token in tokens.items()]

        async def write() -> None:
            async with self._db.hot() as connection:
                await settle(connection, self.worker_id, ends)

        await self._health.persist(write)

    def drop_everything(self) -> None:
        """All of it belongs to others now."""
        self.waiting.clear()
        self.stop_all(Stop.LEASE_LOST)

    def stop_all(self, why: Stop) -> None:
        for run in list(self.runs.values()):
            run.stop(why)

    async def emptied(self) -> None:
        """Wait until no run is left and every completion is written."""
        while self.runs:
            self._run_ended.clear()
            await self._run_ended.wait()
        await self.completions.drained()

    def _fill_slots(self) -> None:
        while self.waiting and len(self.runs) < self.concurrency:
            lease = self.waiting.popleft()
            self._waiting_since = asyncio.get_running_loop().time()
            job = JobContext(lease, self.worker_id, self._db, self._storage, self._pool, self.progress)
            self.runs[lease.id] = Run(
                self._handlers[lease.kind],
                job,
                self.worker_id,
                self._db,
                self._health,
                self._ends,
                on_success=self.completions.add,
                on_end=self._ended,
            )

    def _ended(self, run: Run) -> None:
        self.progress.forget(run.lease.id)
        if self.runs.get(run.lease.id) is run:
            del self.runs[run.lease.id]
        self.typical += 0.05 * (asyncio.get_running_loop().time() - run.started - self.typical)
        self._run_ended.set()
        self._fill_slots()
        if len(self.runs) < self.concurrency or not self.waiting:
            self.on_room()
