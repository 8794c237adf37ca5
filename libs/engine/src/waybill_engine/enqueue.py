"""Step 1: a job is enqueued, inside the caller's transaction, so that it exists exactly if the caller's rows do.

One statement inserts one job or a few, COPY inserts many. Workers hear of them when the transaction commits.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import compress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import asyncpg
from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.db.database import driver
from waybill.errors import Conflict, Refused
from waybill.ids import first_id_at
from waybill.telemetry import spans
from waybill_engine import counts_of_jobs, shelf
from waybill_engine.announcements import ANNOUNCE_DUE, ANNOUNCE_LANES
from waybill_engine.job_traces import enqueuing, parents_traceparent
from waybill_engine.lanes import Lane
from waybill_engine.new_job import NewJob, payload_json
from waybill_engine.sequences import advance, refuse_below_a_sequence
from waybill_engine.tenants import check_granted
from waybill_engine.unique_keys import Unique, WantedKey, find_existing, free_passed_windows

if TYPE_CHECKING:
    from waybill.db.database import Connection

_YOUNG = timedelta(minutes=30)
"""No job is shelved that soon."""

_WORTH_COPYING = 100
"""From so many jobs on, COPY is faster than INSERT in spite of its extra round trips."""

_COPIED = (
    *("id", "tenant", "owner", "kind", "queue", "priority", "cost", "state", "payload"),
    *("max_attempts", "max_crashes", "time_limit", "tells_end"),
)
"""The columns that COPY always writes. The others have their defaults, which costs half as much as sending times."""

_LANE_OF_COPIED = itemgetter(4, 3, 5, 1, 2)
"""The lane of a row of these columns."""

# The database computes `now() + delay` and the state: its clock decides, not the caller's. Jobs of a sequence are
# parked, in the order in which they were given.
_INSERT = f"""
WITH new AS (
    SELECT n.*, COALESCE(n.at, now() + n.delay * interval '1 second') AS run_at,
           CASE WHEN n.sequence_key IS NOT NULL THEN nextval('job_positions') END AS sequence_position
      FROM unnest(
               $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[], $8::text[],
               $9::smallint[], $10::smallint[], $11::real[], $12::timestamptz[], $13::float8[],
               $14::text[], $15::text[], $16::float8[], $17::text[], $18::bool[], $20::text[], $21::smallint[],
               $22::text[]
           ) WITH ORDINALITY AS n (
               id, tenant, owner, kind, queue, priority, cost, payload,
               max_attempts, max_crashes, time_limit, at, delay,
               unique_key, unique_scope, unique_window, traceparent, tells_end, sequence_key, sequence_at_once,
               tracestate, position
           )
), created AS (
    INSERT INTO jobs (
        id, tenant, owner, kind, queue, priority, cost, payload, max_attempts, max_crashes, time_limit,
        state, run_at, unique_key, unique_scope, unique_until, traceparent, tells_end, parent_id, awaited,
        sequence_key, sequence_at_once, sequence_position, parked_for, tracestate, created_at, updated_at
    )
    SELECT id, tenant, owner, kind, queue, priority, cost, payload::jsonb, max_attempts, max_crashes, time_limit,
           CASE WHEN run_at > now() OR sequence_key IS NOT NULL THEN 'scheduled' ELSE 'queued' END,
           CASE WHEN sequence_key IS NOT NULL THEN 'infinity' ELSE run_at END,
           unique_key, unique_scope, now() + unique_window * interval '1 second', traceparent,
           tells_end, $19::uuid, $19::uuid IS NOT NULL,
           sequence_key, sequence_at_once, sequence_position, CASE WHEN sequence_key IS NOT NULL THEN run_at END,
           tracestate, now(), now()
      FROM new
     -- In the order of their keys, so that two callers with the same keys cannot deadlock. The same key may be wanted
     -- while active and for ever; these are two indexes, so their order counts too.
     ORDER BY tenant, kind, unique_key, unique_scope = 'active', position
        ON CONFLICT DO NOTHING
    RETURNING id, queue, kind, priority, tenant, owner, state, run_at
), ready AS (
    SELECT queue, kind, priority, tenant, owner, now() AS created_at, 1 AS jobs FROM created WHERE state = 'queued'
), later AS (
    SELECT run_at FROM created WHERE state = 'scheduled' AND run_at < 'infinity'
), {ANNOUNCE_LANES}, {ANNOUNCE_DUE}
SELECT created.id FROM created, announced, announced_due
"""  # noqa: S608 - made of constants

# The lanes, how many jobs each has got, and when the first job that is not due yet is due.
_ANNOUNCE_COPIED = f"""
WITH ready AS (
    SELECT now() AS created_at, lane.*
      FROM unnest($1::text[], $2::text[], $3::smallint[], $4::text[], $5::text[], $6::bigint[])
           AS lane (queue, kind, priority, tenant, owner, jobs)
), later AS (
    SELECT $7::timestamptz AS run_at
), {ANNOUNCE_LANES}, {ANNOUNCE_DUE}
SELECT FROM announced, announced_due
"""  # noqa: S608 - made of constants


class Enqueued(NamedTuple):
    id: uuid.UUID
    created: bool
    """False when there was a job with the same unique key already; `id` is then that job's."""


async def enqueue(on: Connection | AsyncSession, job: NewJob, *, as_operator: bool = False) -> Enqueued:
    """Enqueue one job in the caller's transaction. As an operator, it may have any priority."""
    return (await enqueue_many(on, [job], as_operator=as_operator))[0]


async def enqueue_many(
    on: Connection | AsyncSession, jobs: Sequence[NewJob], *, as_operator: bool = False
) -> list[Enqueued]:
    """Enqueue many jobs at once. The answers come in the order of the jobs."""
    connection = await driver(on) if isinstance(on, AsyncSession) else on
    return await insert(connection, jobs, as_operator=as_operator)


async def insert(
    connection: Connection,
    jobs: Sequence[NewJob],
    *,
    parent_id: uuid.UUID | None = None,
    as_operator: bool = False,
) -> list[Enqueued]:
    """The same for the engine itself. Whoever names a parent must count the created jobs there; see `families`."""
    if not jobs:
        return []
    if not spans.on():
        return await _insert_checked(connection, jobs, parent_id, as_operator)
    parent = await parents_traceparent(connection, parent_id) if parent_id is not None else None
    with enqueuing(jobs, parent=parent, apart=len(jobs) >= _WORTH_COPYING) as stamped:
        return await _insert_checked(connection, stamped, parent_id, as_operator)


async def _insert_checked(
    connection: Connection, jobs: Sequence[NewJob], parent_id: uuid.UUID | None, as_operator: bool
) -> list[Enqueued]:
    if not as_operator and any(job.priority > 0 for job in jobs):
        # In ascending order, so that each tenant's highest priority is what remains.
        await check_granted(connection, dict(sorted((job.tenant, job.priority) for job in jobs)))
    await _refuse_shelved(connection, jobs)
    if any(job.sequence for job in jobs):
        answers = await _insert_sequences(connection, jobs, parent_id)
    else:
        answers = await _insert(connection, jobs, parent_id)
    counts_of_jobs.enqueued(
        connection, ((job.kind.name, job.tenant) for job, one in zip(jobs, answers, strict=True) if one.created)
    )
    return answers


async def _refuse_shelved(connection: Connection, jobs: Sequence[NewJob]) -> None:
    """An id that is on the shelf is taken. Only a caller who brings along an old id can have one of those."""
    young = first_id_at(datetime.now(UTC) - _YOUNG).int
    old = [job.id for job in jobs if job.id.int < young and job.id.version == 7]
    if old and (taken := await shelf.among(connection, old)):
        raise Refused(f"There is a job with the id {min(taken)} already.")


async def _insert_sequences(
    connection: Connection, jobs: Sequence[NewJob], parent_id: uuid.UUID | None
) -> list[Enqueued]:
    """Insert jobs of which some are in sequences, and let those in whose turn it is."""
    if parent_id is not None:
        await refuse_below_a_sequence(connection, parent_id)
    async with nullcontext() if connection.is_in_transaction() else connection.transaction():
        answers = await _insert(connection, jobs, parent_id)
        await advance(
            connection,
            [
                (job.tenant, job.kind.name, job.sequence.key)
                for job, one in zip(jobs, answers, strict=True)
                if job.sequence is not None and one.created
            ],
        )
    return answers


async def _insert(connection: Connection, jobs: Sequence[NewJob], parent_id: uuid.UUID | None) -> list[Enqueued]:
    if len(jobs) >= _WORTH_COPYING and not any(job.unique or job.sequence for job in jobs):
        await _copy(connection, jobs, parent_id)
        return [Enqueued(job.id, created=True) for job in jobs]
    await free_passed_windows(connection, [_wanted(job, job.unique) for job in jobs if job.unique is not None])
    found: dict[uuid.UUID, Enqueued] = {}
    missing = list(jobs)
    # The job that has a key may end between the two statements; then the key is free, and the next round takes it.
    for _ in range(5):
        created = {row["id"] for row in await connection.fetch(_INSERT, *_columns(missing, parent_id))}
        found |= {job_id: Enqueued(job_id, created=True) for job_id in created}
        missing = [job for job in missing if job.id not in created]
        if missing:
            found |= await _existing(connection, missing)
            missing = [job for job in missing if job.id not in found]
        if not missing:
            return [found[job.id] for job in jobs]
    raise Conflict(f"The unique key {_key(missing[0])!r} is contended. Try again.")


def _wanted(job: NewJob, unique: Unique) -> WantedKey:
    return WantedKey(job.tenant, job.kind.name, unique)


async def _existing(connection: Connection, jobs: Sequence[NewJob]) -> dict[uuid.UUID, Enqueued]:
    """The jobs that have the unique keys of `jobs` already."""
    wanted = []
    for job in jobs:
        if job.unique is None:
            raise Refused(f"There is a job with the id {job.id} already.")
        wanted.append(_wanted(job, job.unique))
    found = await find_existing(connection, wanted)
    return {jobs[position].id: Enqueued(job_id, created=False) for position, job_id in found.items()}


async def _copy(connection: Connection, jobs: Sequence[NewJob], parent_id: uuid.UUID | None) -> None:
    """The same as `_INSERT` for many jobs without unique keys and sequences, in half the time.

    COPY can neither skip conflicts nor count positions.
    """
    try:
        # Inside the caller's transaction this is a savepoint: an id that is taken must not end it.
        async with connection.transaction():
            states, times, due = ["queued"] * len(jobs), list[datetime](), None
            if any(job.delay or job.run_at for job in jobs):
                now = await connection.fetchval("SELECT now()")
                times = [job.run_at or now + timedelta(seconds=job.delay) for job in jobs]
                states = ["scheduled" if run_at > now else "queued" for run_at in times]
                due = min((run_at for run_at in times if run_at > now), default=None)
            records = [
                (
                    job.id,
                    job.tenant,
                    job.owner or job.tenant,
                    job.kind.name,
                    job.queue or job.kind.queue,
                    job.priority,
                    job.cost,
                    state,
                    payload_json(job),
                    job.kind.retry.max_attempts,
                    job.kind.max_crashes,
                    job.kind.time_limit,
                    job.kind.tells_end,
                )
                for job, state in zip(jobs, states, strict=True)
            ]
            more = _other_columns(jobs, times, parent_id)
            await connection.copy_records_to_table(
                "jobs",
                columns=(*_COPIED, *more),
                records=[(*row, *rest) for row, rest in zip(records, zip(*more.values(), strict=True), strict=True)]
                if more
                else records,
            )
            lanes = Counter(map(_LANE_OF_COPIED, compress(records, [state == "queued" for state in states])))
            named = [Lane(*lane) for lane in lanes]
            await connection.execute(
                _ANNOUNCE_COPIED,
                [lane.queue for lane in named],
                [lane.kind for lane in named],
                [lane.priority for lane in named],
                [lane.tenant for lane in named],
                [lane.owner for lane in named],
                list(lanes.values()),
                due,
            )
    except asyncpg.UniqueViolationError as error:
        raise Refused("There is a job with one of these ids already.") from error


def _other_columns(
    jobs: Sequence[NewJob], times: Sequence[datetime], parent_id: uuid.UUID | None
) -> dict[str, Sequence[Any]]:
    """What else COPY has to write, because not all of these jobs leave it at its default."""
    more: dict[str, Sequence[Any]] = {}
    if times:
        more["run_at"] = times
    if any(job.traceparent or job.tracestate for job in jobs):
        more["traceparent"] = [job.traceparent for job in jobs]
        more["tracestate"] = [job.tracestate for job in jobs]
    if parent_id is not None:
        more["parent_id"] = [parent_id] * len(jobs)
        more["awaited"] = [True] * len(jobs)
    return more


def _key(job: NewJob) -> str | None:
    return job.unique.key if job.unique else None


def _columns(jobs: Sequence[NewJob], parent_id: uuid.UUID | None) -> list[Any]:
    """The arguments of `_INSERT`."""
    rows = [
        (
            job.id,
            job.tenant,
            job.owner or job.tenant,
            job.kind.name,
            job.queue or job.kind.queue,
            job.priority,
            job.cost,
            payload_json(job),
            job.kind.retry.max_attempts,
            job.kind.max_crashes,
            job.kind.time_limit,
            job.run_at,
            job.delay,
            _key(job),
            job.unique.scope.value if job.unique else None,
            job.unique.window if job.unique else None,
            job.traceparent,
            job.kind.tells_end,
        )
        for job in jobs
    ]
    return [
        *(list(column) for column in zip(*rows, strict=True)),
        parent_id,
        [job.sequence.key if job.sequence else None for job in jobs],
        [job.sequence.at_once if job.sequence else None for job in jobs],
        [job.tracestate for job in jobs],
    ]
