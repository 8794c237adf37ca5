"""A fleet of workers in simulated time: hours of an outage pass in seconds, on a real database.

It claims, ends runs and reports to breakers with the engine's own functions, as workers do. Only the time that runs
take, and how the dependency answers, are made up. Time jumps from one event to the next; the database's clock with it.
"""

from __future__ import annotations

import heapq
import itertools
import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from support.breakers import CONVERTER, KINDS, converter_worker
from support.engine import some_jobs, take_as
from waybill.db.database import Connection
from waybill.failures import classify
from waybill_engine import ClaimedJob, JobKind, RetryPolicy
from waybill_engine.breaker import BreakerPolicy, probe_result
from waybill_engine.breaker_counts import CallCount, record
from waybill_engine.finish import succeed
from waybill_engine.lease import WorkerInfo, renew
from waybill_engine.let_downs import settle_let_down
from waybill_engine.promotion import promote_due

DOCUMENT = JobKind("convert", dependencies=(CONVERTER,), retry=RetryPolicy(retries=3, base=5.0, jitter=5.0))
"""With the retries of a conversion: four attempts are over in less than a minute."""

Answer = Callable[[float, uuid.UUID], tuple[float, Exception | None]]
"""How the dependency answers a call that begins at a time for a job: after how many seconds, and with which error."""

# A half-open breaker waits for its probes to end. While calls come back gradually, more may start every moment.
_NEXT = """
SELECT extract(epoch FROM least(
    (SELECT min(run_at) FROM jobs WHERE state = 'scheduled'),
    (SELECT min(greatest(open_until, cooldown_until, now() + interval '0.5 seconds')) FROM breakers
      WHERE (state = 'open' OR cooldown_until > now() - interval '10 seconds')
        AND EXISTS (SELECT FROM jobs WHERE state = 'queued'))))::float8
"""


@dataclass(order=True)
class _Run:
    ends_at: float
    number: int
    worker: WorkerInfo = field(compare=False)
    claimed: ClaimedJob = field(compare=False)
    error: Exception | None = field(compare=False)


class SimulatedFleet:
    def __init__(self, connection: Connection, answer: Answer, *, workers: int = 2, slots: int = 75) -> None:
        self.now = 0.0
        """Seconds since the simulation began."""
        self.calls: list[float] = []
        """When each call of the dependency began."""
        self._on = connection
        self._answer = answer
        self._slots = slots
        self._many = workers
        self._workers: list[WorkerInfo] = []
        self._running: list[_Run] = []
        self._numbers = itertools.count()
        self._policy = BreakerPolicy()
        self._rng = random.Random(0)
        self._began = time.monotonic()
        self._origin = 0.0

    async def start(self) -> None:
        self._workers = [await converter_worker(self._on) for _ in range(self._many)]
        for worker in self._workers:
            await renew(self._on, worker.id, 1e6)
        await record(self._on, [CallCount(CONVERTER, 1000, 0)], self._policy)  # it has been well for a while
        self._origin = await self._on.fetchval("SELECT extract(epoch FROM now())::float8")
        self._began = time.monotonic()

    async def enqueue(self, documents: int) -> list[uuid.UUID]:
        return await some_jobs(self._on, documents, DOCUMENT)

    async def run_until(self, when: float, *, or_all_ended: bool = False) -> None:
        """Let everything happen that happens until then, or until no job is left."""
        await self._claim()  # what was enqueued just now
        while self.now < when:
            await self._move_to(min(when, await self._next_event()))
            await promote_due(self._on, 10_000)
            await self._end_runs()
            await self._claim()
            if or_all_ended and not self._running and await self._all_ended():
                return

    async def _next_event(self) -> float:
        due = await self._on.fetchval(_NEXT)
        at = [self.now + 60.0]
        if due is not None:
            at.append(max(due - self._origin, self.now) + 0.01)
        if self._running:
            at.append(self._running[0].ends_at)
        return min(at)

    async def _move_to(self, when: float) -> None:
        # A busy machine may need longer for a step than the step is: the clock never goes back.
        real = time.monotonic() - self._began
        self.now = max(when, self.now)
        shift = "UPDATE test_clock.shift SET seconds = greatest(seconds, $1::float8)"
        await self._on.execute(shift, self.now - real)
        self.now = max(self.now, await self._on.fetchval("SELECT extract(epoch FROM now())::float8") - self._origin)

    async def _end_runs(self) -> None:
        counts: dict[uuid.UUID, CallCount] = {}
        succeeded: dict[uuid.UUID, list[_Run]] = {}
        while self._running and self._running[0].ends_at <= self.now:
            run = heapq.heappop(self._running)
            count = counts.setdefault(run.worker.id, CallCount(CONVERTER))
            probed = run.claimed.probes is not None
            if run.error is None:
                if probed:
                    await self._succeed([run])
                else:
                    succeeded.setdefault(run.worker.id, []).append(run)
                    count.add(ok=True)
                    count.succeeded_ago = self.now - run.ends_at
                continue
            failure = classify(run.error)
            if failure.of_dependency and not probed:
                count.add(ok=False, fresh=run.claimed.last_error is None, away=failure.away)
            blamed = DOCUMENT.blamed(failure)
            await settle_let_down(self._on, run.claimed, failure, blamed, DOCUMENT.retry, self._policy, self._rng)
        for runs in succeeded.values():
            await self._succeed(runs)
        for count in counts.values():
            if count.calls:
                await record(self._on, [count], self._policy)

    async def _succeed(self, runs: Sequence[_Run]) -> None:
        """As a worker writes it: alone if it is a probe, and else with others that succeeded."""
        async with self._on.transaction():
            fenced = [(run.claimed.id, run.claimed.token) for run in runs]
            assert len(await succeed(self._on, runs[0].worker.id, fenced)) == len(runs)
            for name, since in (runs[0].claimed.probes or {}).items():
                await probe_result(self._on, name, ok=True, since=since, policy=self._policy)

    async def _claim(self) -> None:
        busy = {worker.id: 0 for worker in self._workers}
        for run in self._running:
            busy[run.worker.id] += 1
        for worker in self._workers:
            free = self._slots - busy[worker.id]
            if free:
                self._begin(worker, await self._take(worker, free))

    async def _take(self, worker: WorkerInfo, free: int) -> Sequence[ClaimedJob]:
        kinds = [DOCUMENT.name]
        return await take_as(self._on, worker.id, worker.queues, kinds, free, dependencies=KINDS, policy=self._policy)

    def _begin(self, worker: WorkerInfo, claimed_jobs: Sequence[ClaimedJob]) -> None:
        for claimed in claimed_jobs:
            self.calls.append(self.now)
            seconds, error = self._answer(self.now, claimed.id)
            heapq.heappush(self._running, _Run(self.now + seconds, next(self._numbers), worker, claimed, error))

    async def _all_ended(self) -> bool:
        active = "SELECT EXISTS (SELECT FROM jobs WHERE state IN ('scheduled', 'queued', 'running'))"
        return not await self._on.fetchval(active)
