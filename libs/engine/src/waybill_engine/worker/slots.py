"""The worker's slots: the jobs it has claimed, most of them running, a few waiting for a free slot.

The worker's parts meet here: the claimer adds jobs, runs remove them, the heartbeat compares them with the database.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from waybill.db import Database
from waybill.storage import Storage
from waybill_engine import counts_of_jobs
from waybill_engine.claim import ClaimedJob
from waybill_engine.context import JobContext, Tools
from waybill_engine.finish import released, settle
from waybill_engine.models import State
from waybill_engine.new_job import MAX_PAYLOAD
from waybill_engine.registry import Handler
from waybill_engine.worker.clients import Clients
from waybill_engine.worker.completer import Completer
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.dependencies import Dependencies
from waybill_engine.worker.end_writer import EndWriter
from waybill_engine.worker.process_pool import BlockingPool
from waybill_engine.worker.progress_writer import ProgressWriter
from waybill_engine.worker.run import Run, RunEnvironment, Stop

_PATIENCE = 0.5
"""Seconds that a job may wait here for a slot. Then it is released, so that another worker can take it."""

_OLD_AVERAGE = 0.95
"""What the moving average keeps of itself with each run. Runs that end in one go of the event loop count together: the
first run of a task has waited for the loop, the others that follow it have not, and only all of them say what is
typical."""

_WATCH_EVERY = 0.05
"""Seconds between checks for runs whose time is up."""

_NO_JOB = contextvars.Context()
"""The timer that watches all runs must not log in the name of the job that happened to start it."""


class Slots:
    def __init__(
        self,
        worker_id: uuid.UUID,
        db: Database,
        health: DatabaseHealth,
        storage: Storage,
        clients: Clients,
        pool: BlockingPool,
        handlers: Mapping[str, Handler],
        concurrency: int,
        dependencies: Dependencies,
    ) -> None:
        self.concurrency = concurrency
        self.runs: dict[uuid.UUID, Run] = {}
        self.waiting: deque[ClaimedJob] = deque()
        self.completer = Completer(db, health, self)
        self.progress = ProgressWriter(db, health)
        self.on_room: Callable[[], None] = lambda: None
        """Called when a slot is free and no job waits for it, and once when only `low` jobs wait."""
        self.low = 0
        """When only so many jobs wait, more should be claimed. The claimer sets it each time."""
        self.on_written: Callable[[Iterable[ClaimedJob]], None] = lambda _: None
        """Called with jobs whose ends were written, because a cap may have room again."""
        self.on_finished: Callable[[Sequence[ClaimedJob], State], None] = lambda _jobs, _state: None
        """Called with jobs that ended for good in runs of this worker, after that was committed."""
        self.typical = 1.0
        """Seconds that a run takes, as a moving average. It starts high, so that nothing is claimed ahead at first."""
        self.typical_bytes = float(MAX_PAYLOAD)
        """Bytes that a payload has. It rises at once and falls slowly, and it starts with the most that one may have:
        a few small payloads too many do no harm, big ones do."""
        self.worker_id = worker_id
        """The id under which this process claims jobs now. Each run keeps the id that it was claimed under."""
        self._tools = Tools(db, storage, clients, pool, self.progress, dependencies)
        self._loop = asyncio.get_running_loop()
        self._db = db
        self._health = health
        self._handlers = handlers
        self._run_ended = asyncio.Event()
        self._environment = RunEnvironment(
            ends=EndWriter(self._tools, health, self._finished),
            loop=self._loop,
            context=contextvars.copy_context(),
            on_success=self._succeeded,
            on_finished=self._finished,
            on_end=self._ended,
        )
        self._waiting_since = 0.0
        self._watching = False
        self._over: list[ClaimedJob] = []
        """Jobs whose runs are over and not counted yet."""
        self._seconds_over = 0.0
        """For how long those had their slots, all together."""

    def __len__(self) -> int:
        return len(self.waiting) + len(self.runs)

    def known(self) -> set[uuid.UUID]:
        """The jobs that this worker knows it has."""
        return {*self.runs, *self.completer.ids(), *(job.id for job in self.waiting)}

    def take(self, jobs: list[ClaimedJob]) -> None:
        """Start newly claimed jobs, as far as there are free slots."""
        if not self.waiting:
            self._waiting_since = self._loop.time()
        if jobs:
            bytes_each = max(sum(len(job.payload_text) for job in jobs) / len(jobs), 1.0)
            self.typical_bytes = max(bytes_each, (self.typical_bytes + bytes_each) / 2)
        now = self._loop.time()
        for job in jobs:
            job.claimed_at = now
        counts_of_jobs.claimed(jobs)
        self.waiting.extend(jobs)
        self._fill_slots()

    async def give_back_waiting(self, only: Collection[uuid.UUID] | None = None) -> None:
        """Release jobs that have not started, so that another worker takes them at once."""
        back = {job.id: job.token for job in self.waiting if only is None or job.id in only}
        if back:
            self.waiting = deque(job for job in self.waiting if job.id not in back)
            await self.release(back, "Released before it started.")

    async def release_the_waiting(self) -> None:
        """For ever: release jobs that were claimed ahead and did not start, because a slow job came in between."""
        while True:
            await asyncio.sleep(_PATIENCE / 2)
            if self.waiting and self._loop.time() - self._waiting_since > _PATIENCE:
                self.typical = max(self.typical, _PATIENCE)  # so that the next claim takes no jobs ahead
                await self.give_back_waiting()

    async def release(self, tokens: Mapping[uuid.UUID, int], reason: str) -> None:
        ends = [(job_id, token, released(reason)) for job_id, token in tokens.items()]

        async def write() -> None:
            async with self._db.hot(urgent=True) as connection:  # the heartbeat waits for it
                await settle(connection, self.worker_id, ends)

        await self._health.persist(write)

    def drop_everything(self) -> None:
        """Stop everything, because all of it belongs to others now."""
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
        await self.completer.drained()

    def _fill_slots(self) -> None:
        while self.waiting and len(self.runs) < self.concurrency:
            self._next_run(time.monotonic()).start()
        if self.runs and not self._watching:
            self._watching = True
            self._loop.call_later(_WATCH_EVERY, self._watch, context=_NO_JOB)

    def _next_run(self, now: float) -> Run:
        job = self.waiting.popleft()
        handler = self._handlers[job.kind]
        probe = self._tools.dependencies.probe(job) if job.probes is not None else None
        context = JobContext(job, self._tools, probe, handler.kind.dependencies)
        run = self.runs[job.id] = Run(handler, context, self._tools, self._environment, now)
        self._waiting_since = now
        return run

    def _finished(self, jobs: Sequence[ClaimedJob], state: State) -> None:
        self.on_finished(jobs, state)

    def _succeeded(self, job: ClaimedJob) -> None:
        job.payload_text = "{}"  # thousands of completions may wait to be written, and none needs its payload
        self.completer.add(job)

    def _watch(self) -> None:
        """Stop runs that have used up their time, for as long as anything runs."""
        now = self._loop.time()
        for run in list(self.runs.values()):
            if now >= run.deadline:
                run.deadline = math.inf  # only once, because a second cancellation would interrupt its clean-up
                run.stop(Stop.TIME_LIMIT)
        self._watching = bool(self.runs)
        if self._watching:
            self._loop.call_later(_WATCH_EVERY, self._watch, context=_NO_JOB)

    def _ended(self, run: Run) -> None:
        job, now = run.claimed, time.monotonic()
        self.progress.forget(job.id)
        if self.runs.get(job.id) is run:
            del self.runs[job.id]
        self._seconds_over += now - run.started
        if not self._over:
            self._loop.call_soon(self._count_runs, context=_NO_JOB)
        self._over.append(job)
        self._run_ended.set()
        if self._may_follow(run, now):
            self._next_run(now).follow(run)
        self._fill_slots()
        if run.written:
            self.on_written((job,))
        elif len(self.waiting) <= self.low or len(self.runs) < self.concurrency:
            self.low = -1
            self.on_room()

    def _may_follow(self, run: Run, now: float) -> bool:
        """Whether the next job may run in the task of a run that has just ended; see `run_chain`."""
        return (
            bool(self.waiting)
            and len(self.runs) < self.concurrency
            and self.waiting[0].kind == run.claimed.kind  # which is the task's name
            and run.leaves_its_task(now)
        )

    def _count_runs(self) -> None:
        over, self._over = self._over, []
        mean, self._seconds_over = self._seconds_over / len(over), 0.0
        self.typical = mean + (self.typical - mean) * _OLD_AVERAGE ** len(over)
        counts_of_jobs.runs_ended(over)
