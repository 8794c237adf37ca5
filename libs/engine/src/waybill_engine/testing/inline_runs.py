"""Runs of jobs in the caller's own process, by the worker's own code.

A worker for just this job registers, claims it, runs it in its one slot and stops: time limit, fences, retry policy,
breaker and completion are those of production. What it leaves out is the lease's renewal; the lease lasts long enough.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from waybill import __version__
from waybill.db import Database
from waybill.errors import Conflict, NotFound
from waybill.ids import new_id
from waybill.storage import Storage
from waybill_engine import breaker
from waybill_engine.caps import find_caps
from waybill_engine.claim import ClaimedJob, claim
from waybill_engine.context import JobContext
from waybill_engine.enqueue import enqueue
from waybill_engine.explain import explain
from waybill_engine.fair_share import FairShare
from waybill_engine.finish import released, settle
from waybill_engine.kind_limits import record_limits
from waybill_engine.lanes import Lane, LaneScan, Position
from waybill_engine.lease import WorkerInfo, register, stop
from waybill_engine.models import State
from waybill_engine.new_job import NewJob
from waybill_engine.rates import find_rates
from waybill_engine.registry import Handler, load_handlers
from waybill_engine.worker.clients import Clients
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.dependencies import Dependencies
from waybill_engine.worker.process_pool import BlockingPool
from waybill_engine.worker.run import Stop
from waybill_engine.worker.slots import Slots

_LEASE = 3600.0
"""Seconds beyond the job's time limit."""

_LOOK = "SELECT queue, kind, priority, tenant, owner, isolate, time_limit, created_at FROM jobs WHERE id = $1"

_OUTCOME = """
SELECT state, attempts, error_code, error_message, progress, progress_message,
       CASE WHEN state = 'scheduled' THEN extract(epoch FROM run_at - now())::float8 END AS due_in
  FROM jobs WHERE id = $1
"""

_NEXT = "SELECT id FROM jobs WHERE state = 'queued' AND kind = ANY ($1::text[]) ORDER BY created_at, id LIMIT 1"


@dataclass(frozen=True, slots=True)
class InlineOutcome:
    """What became of a job by one run."""

    id: uuid.UUID
    state: State
    """`succeeded`; `scheduled` if it is tried again later; `failed` or `dead_letter` if it is not."""
    attempts: int
    """How many attempts it has been charged so far."""
    code: str | None
    """The code of its last error; see `waybill.errors`."""
    message: str | None
    progress: float | None
    progress_message: str | None
    due_in: float | None
    """In how many seconds it is tried again, if it is `scheduled`."""
    error: BaseException | None
    """What the handler raised, as it was."""


async def run_inline(db: Database, storage: Storage, job: NewJob | uuid.UUID) -> InlineOutcome:
    """Run one job once, and return what became of it. A `NewJob` is enqueued first, an id names a job that waits.

    Raises Conflict if the job cannot run now, and says why: it may be scheduled (see `make_due`), its queue paused, or
    its breaker open.
    """
    if isinstance(job, NewJob):
        load_handlers((), [job.kind.name])  # complains before anything is enqueued
        async with db.hot() as connection:
            answer = await enqueue(connection, job)
        if not answer.created:
            raise Conflict(f"Job {answer.id} has the unique key already; run that one by its id.")
        job = answer.id
    async with db.hot() as connection:
        found = await connection.fetchrow(_LOOK, job)
    if found is None:
        raise NotFound(f"There is no job {job}.")
    lane = Lane(*(found[name] for name in Lane._fields))
    handler = load_handlers((), [lane.kind])[lane.kind]
    raised: list[BaseException] = []
    async with _worker(db, storage, _noting(handler, raised), lane, found["time_limit"]) as slots:
        wanted = Position(found["created_at"], job)
        slots.take([await _claim(db, slots.worker_id, handler, lane, wanted, isolated=found["isolate"])])
    async with db.hot() as connection:
        ended = await connection.fetchrow(_OUTCOME, job)
    if ended is None:
        raise NotFound(f"Job {job} was deleted while it ran.")
    return InlineOutcome(
        job,
        State(ended["state"]),
        ended["attempts"],
        ended["error_code"],
        ended["error_message"],
        ended["progress"],
        ended["progress_message"],
        ended["due_in"],
        raised[0] if raised else None,
    )


async def run_waiting(
    db: Database, storage: Storage, *, kinds: Sequence[str] = (), at_most: int = 1000
) -> list[InlineOutcome]:
    """Run every job that waits now and has a handler, and every job that these enqueue, the oldest first.

    Jobs that are scheduled for later stay where they are. Raises AssertionError when more than `at_most` jobs run.
    """
    served = sorted(load_handlers((), kinds))
    outcomes: list[InlineOutcome] = []
    while True:
        async with db.hot() as connection:
            job_id = await connection.fetchval(_NEXT, served)
        if job_id is None:
            return outcomes
        if len(outcomes) == at_most:
            raise AssertionError(f"{at_most} jobs have run, and job {job_id} still waits: do they enqueue each other?")
        outcomes.append(await run_inline(db, storage, job_id))


def _noting(handler: Handler, raised: list[BaseException]) -> Handler:
    """The handler, with a note of what it raises."""

    async def run(payload: dict[str, Any], job: JobContext) -> None:
        try:
            await handler.run(payload, job)
        except BaseException as error:
            raised.append(error)
            raise

    return Handler(handler.kind, run)


@asynccontextmanager
async def _worker(
    db: Database, storage: Storage, handler: Handler, lane: Lane, time_limit: float
) -> AsyncIterator[Slots]:
    """A worker with one slot that serves this lane. When the block ends, it finishes what it took, and stops."""
    kind = handler.kind
    me = WorkerInfo(
        id=new_id(),
        name=f"inline:{os.getpid()}",
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        queues=[lane.queue],
        kinds=[kind.name],
        concurrency=1,
    )
    async with db.hot() as connection:
        await record_limits(connection, [kind])
        await breaker.register_kinds(connection, {kind.name: kind.dependencies})
        await register(connection, me, time_limit + _LEASE)
    health, clients = DatabaseHealth(), Clients()
    dependencies = Dependencies(db, health, breaker.BreakerPolicy())
    slots = Slots(me.id, db, health, storage, clients, BlockingPool(1), {kind.name: handler}, 1, dependencies)
    supporting = [
        asyncio.create_task(slots.completer.run()),
        asyncio.create_task(slots.completer.write_the_locked()),
        asyncio.create_task(slots.progress.run()),
    ]
    emptied: asyncio.Task[None] | None = None
    try:
        yield slots
        emptied = asyncio.create_task(slots.emptied())
        # The others run for ever. One that ends has failed, and the slot would never be empty.
        done, _ = await asyncio.wait([emptied, *supporting], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        await dependencies.flush()
    finally:
        slots.stop_all(Stop.SHUTDOWN)
        tasks = [*supporting, emptied] if emptied is not None else supporting
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await clients.close()
        async with db.hot() as connection:
            await stop(connection, me.id)


async def _claim(
    db: Database, worker_id: uuid.UUID, handler: Handler, lane: Lane, wanted: Position, *, isolated: bool
) -> ClaimedJob:
    """Claim exactly this job, under the rules that hold for every claim."""
    job_id = wanted.id
    fair_share = FairShare({lane.kind: handler.kind.dependencies})
    async with db.hot() as connection:
        _, rules = await LaneScan([lane.queue], [lane.kind], isolated=isolated).look(connection)
        fair_share.apply(rules)
        fair_share.announce(lane, wanted)  # a claim starts from the job that was announced
        # A look finds only so many lanes, and this one may not be among them.
        fair_share.learn([lane], await find_caps(connection, [lane]), await find_rates(connection, [lane]))
        claimed = await claim(connection, worker_id, fair_share, 1, isolated=isolated)
        if claimed and claimed[0].id == job_id:
            return claimed[0]
        back = [(one.id, one.token, released("Claimed instead of another job.")) for one in claimed]
        if back:  # the wanted one cannot be claimed, and this one came after it
            await settle(connection, worker_id, back)
        why = await explain(connection, job_id)
    raise Conflict(f"Job {job_id} cannot run now. {why.sentence}")
