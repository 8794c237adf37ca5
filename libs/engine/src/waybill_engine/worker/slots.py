"""The jobs this worker holds: a few waiting for a slot, the rest running.

The worker's parts meet here: the claimer fills it, runs leave it, the heartbeat compares it with the database's view.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import uuid
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from waybill.db import Database
from waybill_engine import Lease
from waybill_engine.context import JobContext, Outside, Tools
from waybill_engine.finish import released, settle
from waybill_engine.registry import Handler
from waybill_engine.worker.completer import Completions
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.dependencies import Dependencies
from waybill_engine.worker.process_pool import BlockingPool
from waybill_engine.worker.progress_writer import ProgressWriter
from waybill_engine.worker.run import Run, Stop, Surroundings

_PATIENCE = 0.5
"""Seconds a job may wait here for a slot before another worker may have it."""

_WATCH_EVERY = 0.05
"""Seconds between looks for runs whose time is up."""

_NOBODYS = contextvars.Context()
"""What watches all runs must not log in the name of the one that happened to start it."""


class Bench:
    def __init__(
        self,
        worker_id: uuid.UUID,
        db: Database,
        health: DatabaseHealth,
        outside: Outside,
        pool: BlockingPool,
        handlers: Mapping[str, Handler],
        concurrency: int,
        dependencies: Dependencies,
    ) -> None:
        self.concurrency = concurrency
        self.runs: dict[uuid.UUID, Run] = {}
        self.waiting: deque[Lease] = deque()
        self.completions = Completions(db, health, self)
        self.progress = ProgressWriter(db, health)
        self.on_room: Callable[[], None] = lambda: None
        """Called when a slot was freed and nothing waits for it, and once when as few wait as `low` says."""
        self.low = 0
        """How few may wait before more should be taken. Whoever takes them says it anew each time."""
        self.on_written: Callable[[], None] = lambda: None
        """Called when ends of runs were written: there may be room under a cap."""
        self.typical = 1.0
        """Seconds a run takes, as a moving average. Starts high: prefetch is earned."""
        self._tools = Tools(worker_id, db, outside, pool, self.progress, dependencies)
        self._loop = asyncio.get_running_loop()
        self._db = db
        self._health = health
        self._handlers = handlers
        self._run_ended = asyncio.Event()
        self._around = Surroundings(
            health,
            ends=asyncio.Semaphore(2),  # so the heartbeat always finds a connection
            loop=self._loop,
            on_success=self.completions.add,
            on_end=self._ended,
        )
        self._waiting_since = 0.0
        self._watching = False

    @property
    def worker_id(self) -> uuid.UUID:
        """Under which id this process holds its jobs."""
        return self._tools.worker_id

    def start_over(self, worker_id: uuid.UUID) -> None:
        """The process was declared gone: what it takes from now on it holds under a new id."""
        self._tools = replace(self._tools, worker_id=worker_id)

    def __len__(self) -> int:
        return len(self.waiting) + len(self.runs)

    def known(self) -> set[uuid.UUID]:
        """The jobs this worker is aware of holding."""
        return {*self.runs, *self.completions.ids(), *(lease.id for lease in self.waiting)}

    def take(self, leases: list[Lease]) -> None:
        """Newly claimed jobs."""
        if not self.waiting:
            self._waiting_since = self._loop.time()
        self.waiting.extend(leases)
        self._fill_slots()

    async def give_back_waiting(self, only: Collection[uuid.UUID] | None = None) -> None:
        """Return what has not started, untouched, so that another worker takes it at once."""
        back = {lease.id: lease.token for lease in self.waiting if only is None or lease.id in only}
        if back:
            self.waiting = deque(lease for lease in self.waiting if lease.id not in back)
            await self.release(back, "Given back before it started.")

    async def keep_nothing_waiting(self) -> None:
        """For ever: give back what was taken ahead and did not get its turn, because a slow job came in between."""
        while True:
            await asyncio.sleep(_PATIENCE / 2)
            if self.waiting and self._loop.time() - self._waiting_since > _PATIENCE:
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
            handler = self._handlers[lease.kind]
            probe = self._tools.dependencies.probe(handler.kind, lease) if lease.probe is not None else None
            run = Run(handler, JobContext(lease, self._tools, probe), self._tools, self._around)
            self.runs[lease.id] = run
            self._waiting_since = run.started

        if self.runs and not self._watching:
            self._watching = True
            self._loop.call_later(_WATCH_EVERY, self._watch, context=_NOBODYS)

    def _watch(self) -> None:
        """Stop what has used up its time, for as long as anything runs."""
        now = self._loop.time()
        for run in list(self.runs.values()):
            if now >= run.deadline:
                run.deadline = math.inf  # once: a second cancellation would interrupt its tidying up
                run.stop(Stop.TIME_LIMIT)
        self._watching = bool(self.runs)
        if self._watching:
            self._loop.call_later(_WATCH_EVERY, self._watch, context=_NOBODYS)

    def _ended(self, run: Run) -> None:
        self.progress.forget(run.lease.id)
        if self.runs.get(run.lease.id) is run:
            del self.runs[run.lease.id]
        self.typical += 0.05 * (self._loop.time() - run.started - self.typical)
        self._run_ended.set()
        self._fill_slots()
        if run.written:
            self.on_written()
        elif len(self.waiting) <= self.low or len(self.runs) < self.concurrency:
            self.low = -1
            self.on_room()
