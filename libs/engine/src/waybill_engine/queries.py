"""Reading jobs, queues, workers and schedules. These are ordinary reads, so SQLModel writes the SQL."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.db.database import driver
from waybill.errors import NotFound
from waybill.pg_text import as_object
from waybill_engine import waits
from waybill_engine.job_lists import Wanted, newest
from waybill_engine.models import Artefact, Job, Queue, State, Worker, WorkerState
from waybill_engine.queue_counts import count_by_queue
from waybill_engine.schedule_models import ScheduleRow
from waybill_engine.shelf_models import AnyJob, AnyJobEvent


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of a job's history."""

    at: datetime
    event: str
    worker: str | None
    lease_token: int | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class QueueStats:
    queue: str
    paused_at: datetime | None
    paused_reason: str | None
    counts: dict[State, int]
    oldest_queued_at: datetime | None
    """Of those that were counted."""
    at_least: frozenset[State] = frozenset()
    """States of which there may be more than `counts` says."""


async def list_jobs(
    session: AsyncSession,
    *,
    states: Sequence[State] = (),
    kind: str | None = None,
    queue: str | None = None,
    tenant: str | None = None,
    parent_id: uuid.UUID | None = None,
    before: uuid.UUID | None = None,
    limit: int = 50,
) -> Sequence[Job]:
    """Jobs, newest first. `before` continues a list where it ended."""
    return await newest(session, Wanted(states, kind, queue, tenant, parent_id, before, limit))


async def get_job(session: AsyncSession, job_id: uuid.UUID) -> Job:
    job = await session.get(Job, job_id)
    if job is None:
        job = (await session.exec(select(AnyJob).where(AnyJob.id == job_id))).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


async def count_children(session: AsyncSession, job_id: uuid.UUID) -> dict[State, int]:
    """How many children a job has in each state. Purged children are not counted."""
    query = select(AnyJob.state, sa.func.count()).where(AnyJob.parent_id == job_id).group_by(AnyJob.state)
    return {State(state): count for state, count in (await session.exec(query)).all()}


async def history(session: AsyncSession, job: Job) -> list[Happening]:
    """What happened to a job, in order. The starts come from the job and its runs (see `JobEvent`), and what breakers
    did while it waited comes from their own history (see `waits`)."""
    rows = (await session.exec(_events_of(job).order_by(AnyJobEvent.id))).all()
    enqueued = Happening(job.created_at, "enqueued", None, None, {"queue": job.queue})
    return await _in_order(session, job, [enqueued], rows)


async def newest_history(session: AsyncSession, job: Job, most: int) -> tuple[list[Happening], int | None]:
    """The end of a job's history, and how many runs came before it; None if it is all there is.

    A job that was snoozed for days has tens of thousands of events, more than anybody reads on a page.
    """
    rows = (await session.exec(_events_of(job).order_by(AnyJobEvent.id.desc()).limit(most + 1))).all()
    if len(rows) <= most:
        return await history(session, job), None
    rows = rows[most - 1 :: -1]
    earlier = sa.func.count(AnyJobEvent.started_at)
    query = select(earlier).where(AnyJobEvent.job_id == job.id, AnyJobEvent.id < rows[0][0].id)
    return await _in_order(session, job, [], rows), (await session.exec(query)).one()


def _events_of(job: Job) -> Any:
    return (
        select(AnyJobEvent, Worker.name)
        .join(Worker, col(Worker.id) == AnyJobEvent.worker_id, isouter=True)
        .where(AnyJobEvent.job_id == job.id)
    )


async def _in_order(
    session: AsyncSession, job: Job, happenings: list[Happening], rows: Sequence[Any]
) -> list[Happening]:
    for event, worker in rows:
        if event.started_at is not None:
            happenings.append(Happening(event.started_at, "started", worker, event.lease_token, {}))
        happenings.append(Happening(event.at, event.event, worker, event.lease_token, as_object(event.detail)))
    if job.lease_owner is not None and job.started_at is not None:
        owner = await session.get(Worker, job.lease_owner)
        name = owner.name if owner else None
        happenings.append(Happening(job.started_at, "started", name, job.lease_token, {}))
    # The sort is stable: events of the same time keep the order in which they were written.
    happenings.sort(key=lambda one: one.at)
    return sorted([*happenings, *await _of_breakers(session, job, happenings)], key=lambda one: one.at)


async def _of_breakers(session: AsyncSession, job: Job, happenings: Sequence[Happening]) -> list[Happening]:
    """What the breakers of its dependencies did while a job waited."""
    times = list(waits.waits([(one.at, one.event, one.detail) for one in happenings], State(job.state)))
    found = await waits.transitions_in(await driver(session), job.kind, times)
    return [
        Happening(one.at, f"{waits.PREFIX}{one.event}", None, None, {"dependency": one.dependency, **one.detail})
        for one in found
    ]


async def artefacts(session: AsyncSession, job_id: uuid.UUID) -> Sequence[Artefact]:
    return (await session.exec(select(Artefact).where(Artefact.job_id == job_id).order_by(Artefact.name))).all()


async def queue_stats(session: AsyncSession) -> list[QueueStats]:
    """What each queue has. Counts end at a bound; `at_least` names the states of which there may be more."""
    counted = await count_by_queue(session)
    decided = {queue.name: queue for queue in (await session.exec(select(Queue))).all()}
    return [
        QueueStats(
            queue=name,
            paused_at=decided[name].paused_at if name in decided else None,
            paused_reason=decided[name].paused_reason if name in decided else None,
            counts=counted[name].counts if name in counted else {},
            oldest_queued_at=counted[name].oldest_queued_at if name in counted else None,
            at_least=frozenset(counted[name].at_least) if name in counted else frozenset(),
        )
        for name in sorted(counted.keys() | decided.keys())
    ]


async def list_workers(session: AsyncSession, *, everyone: bool = False) -> Sequence[Worker]:
    """The workers that are alive; with `everyone`, also those that stopped or are gone."""
    query = select(Worker).order_by(col(Worker.started_at).desc())
    if not everyone:
        query = query.where(col(Worker.state).in_([WorkerState.ACTIVE.value, WorkerState.DRAINING.value]))
    return (await session.exec(query)).all()


async def database_time(session: AsyncSession) -> datetime:
    """The database's clock, from which all times in its rows come. Count ages from it, not from your own clock."""
    return (await session.exec(select(sa.func.now()))).one()


async def ids_between(session: AsyncSession, first: uuid.UUID, last: uuid.UUID, *, limit: int) -> Sequence[uuid.UUID]:
    """The job ids from `first` to `last`, to look up an abbreviated id by a range of the primary key."""
    query = select(AnyJob.id).where(AnyJob.id.between(first, last)).order_by(AnyJob.id).limit(limit)
    return (await session.exec(query)).all()


async def worker_of(session: AsyncSession, job: Job) -> Worker | None:
    """The worker that runs the job now."""
    return await session.get(Worker, job.lease_owner) if job.lease_owner is not None else None


async def count_running_by_worker(session: AsyncSession) -> dict[uuid.UUID, int]:
    """How many jobs each worker runs. Workers that run none are left out."""
    query = (
        select(Job.lease_owner, sa.func.count()).where(col(Job.lease_owner).is_not(None)).group_by(col(Job.lease_owner))
    )
    return {owner: count for owner, count in (await session.exec(query)).all() if owner is not None}


async def list_schedules(session: AsyncSession) -> Sequence[ScheduleRow]:
    return (await session.exec(select(ScheduleRow).order_by(col(ScheduleRow.name)))).all()


async def get_schedule(session: AsyncSession, name: str) -> ScheduleRow:
    schedule = await session.get(ScheduleRow, name)
    if schedule is None:
        raise NotFound(f"There is no schedule {name}.")
    return schedule
