"""Step 1: a job comes into being.

Inside the caller's transaction, so that it exists exactly if the caller's own rows do. One statement takes one job or
some, COPY takes many; workers are told when the transaction commits.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import asyncpg
from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.db.database import driver
from waybill.errors import Conflict, Refused
from waybill.ids import new_id
from waybill.pg_text import is_storable
from waybill_engine.kinds import JobKind, is_name
from waybill_engine.tenants import check_granted

if TYPE_CHECKING:
    from waybill.db.database import Connection

_LONGEST = 10 * 366 * 86400.0
"""Seconds nobody plans beyond."""

_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)

_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

MAX_PAYLOAD = 64 * 1024
"""Bytes of JSON. Rows stay narrow; what is bigger belongs into storage, with its key in the payload."""

_WORTH_COPYING = 100
"""Jobs from which COPY, with its extra round trips, is faster than INSERT."""

_MANY_LANES = 16
"""Lanes beyond which workers are told the queue, and look for themselves. `_INSERT` and the promotion have it too."""

_COPIED = (
    *("id", "tenant", "owner", "kind", "queue", "priority", "cost", "state", "payload"),
    *("max_attempts", "max_crashes", "time_limit", "run_at", "traceparent", "created_at", "updated_at"),
    *("parent_id", "awaited"),
)

# `now() + delay` and the state are the database's to compute: its clock decides, not the caller's.
_INSERT = """
WITH new AS (
    SELECT n.*, COALESCE(n.at, now() + n.delay * interval '1 second') AS run_at
      FROM unnest(
               $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[], $8::text[],
               $9::smallint[], $10::smallint[], $11::real[], $12::timestamptz[], $13::float8[],
               $14::text[], $15::text[], $16::float8[], $17::text[]
           ) WITH ORDINALITY AS n (
               id, tenant, owner, kind, queue, priority, cost, payload,
               max_attempts, max_crashes, time_limit, at, delay,
               unique_key, unique_scope, unique_window, traceparent, position
           )
), created AS (
    INSERT INTO jobs (
        id, tenant, owner, kind, queue, priority, cost, payload, max_attempts, max_crashes, time_limit,
        state, run_at, unique_key, unique_scope, unique_until, traceparent, parent_id, awaited, created_at, updated_at
    )
    SELECT id, tenant, owner, kind, queue, priority, cost, payload::jsonb, max_attempts, max_crashes, time_limit,
           CASE WHEN run_at > now() THEN 'scheduled' ELSE 'queued' END, run_at,
           unique_key, unique_scope, now() + unique_window * interval '1 second', traceparent,
           $18::uuid, $18::uuid IS NOT NULL, now(), now()
      FROM new
     -- In the order of their keys: two callers with the same keys wait for each other in the same order.
     ORDER BY tenant, kind, unique_key, position
        ON CONFLICT DO NOTHING
    RETURNING id, queue, kind, priority, tenant, state, run_at
), lanes AS (
    SELECT queue, kind, priority, tenant, min(id::text) AS first, count(*) OVER () > 16 AS many
      FROM created WHERE state = 'queued' GROUP BY queue, kind, priority, tenant
), told AS (
    -- Sent when the transaction commits: which lanes (or, of many, which queues) have something, or in how many
    -- seconds something is due.
    SELECT count(pg_notify('waybill_jobs', CASE
               WHEN many THEN queue ELSE json_build_array(queue, kind, priority, tenant, first)::text END))
      FROM lanes
), told_later AS (
    SELECT count(pg_notify('waybill_scheduled', next_in::text))
      FROM (SELECT extract(epoch FROM min(run_at) - now()) AS next_in FROM created WHERE state = 'scheduled') AS due
     WHERE next_in IS NOT NULL
)
SELECT created.id FROM created, told, told_later
"""

_TELL = "SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS news (channel, payload)"

# Found by their keys, locked by their ids: everybody who locks several jobs does so in the order of their ids.
_FREE_PASSED_WINDOWS = """
WITH passed AS MATERIALIZED (
    SELECT passed.id
      FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (tenant, kind, unique_key),
           LATERAL (
               SELECT id FROM jobs
                WHERE jobs.tenant = wanted.tenant AND jobs.kind = wanted.kind AND jobs.unique_key = wanted.unique_key
                  AND jobs.unique_scope IN ('window', 'forever') AND jobs.unique_until <= now()
                LIMIT 1
           ) AS passed
), locked AS MATERIALIZED (
    SELECT id FROM jobs
     WHERE id = ANY (ARRAY(SELECT id FROM passed)) AND unique_until <= now()
     ORDER BY id
       FOR UPDATE
)
UPDATE jobs SET unique_key = NULL, unique_scope = NULL, unique_until = NULL
 WHERE id = ANY (ARRAY(SELECT id FROM locked))
"""

# Scopes that are kept share one index, and so one name space; `active` has its own.
_FIND_EXISTING = """
SELECT wanted.position, existing.id
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
       WITH ORDINALITY AS wanted (tenant, kind, unique_key, unique_scope, position),
       LATERAL (
           SELECT id FROM jobs
            WHERE jobs.tenant = wanted.tenant AND jobs.kind = wanted.kind AND jobs.unique_key = wanted.unique_key
              AND jobs.unique_scope = 'active' AND jobs.state IN ('scheduled', 'queued', 'running')
              AND wanted.unique_scope = 'active'
           UNION ALL
           SELECT id FROM jobs
            WHERE jobs.tenant = wanted.tenant AND jobs.kind = wanted.kind AND jobs.unique_key = wanted.unique_key
              AND jobs.unique_scope IN ('window', 'forever')
              AND wanted.unique_scope IN ('window', 'forever')
       ) AS existing
"""


class UniqueScope(StrEnum):
    ACTIVE = "active"
    """One at a time: a new one may start once the old one has ended."""
    WINDOW = "window"
    """One per window, counted from the first."""
    FOREVER = "forever"
    """One, as long as its row is kept."""


@dataclass(frozen=True, slots=True)
class Unique:
    """Two jobs of one tenant and kind with the same key are the same job, within a scope."""

    key: str
    scope: UniqueScope = UniqueScope.ACTIVE
    window: float | None = None
    """Seconds, for the scope `WINDOW`."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= 500 or not is_storable(self.key):
            raise Refused("A unique key has 1 to 500 characters, none of them NUL.")
        if self.window is not None and not 0 < self.window <= _LONGEST:
            raise Refused("A unique key's window is more than 0 seconds and at most ten years.")
        if (self.scope is UniqueScope.WINDOW) != (self.window is not None):
            raise Refused("A window in seconds goes with the unique scope 'window', and only with it.")


@dataclass(frozen=True, slots=True)
class NewJob:
    kind: JobKind
    tenant: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    owner: str | None = None
    """Defaults to the tenant: an API key owns as its tenant does."""
    queue: str | None = None
    priority: int = 0
    """Higher first. Above 0 only as far as an operator has granted it to the tenant."""
    cost: int = 1
    """How much work it is, in bytes, pages or whatever fits: tenants share by it. One unit for all, please."""
    delay: float = 0.0
    """Seconds from now, by the database's clock."""
    run_at: datetime | None = None
    """An absolute time instead of a delay."""
    unique: Unique | None = None
    traceparent: str | None = None
    id: uuid.UUID = field(default_factory=new_id)

    def __post_init__(self) -> None:
        # Refused here, because an error in the database would end the caller's transaction.
        if not (1 <= len(self.tenant) <= 200 and is_storable(self.tenant)):
            raise Refused("A job's tenant has 1 to 200 characters, none of them NUL.")
        if self.owner is not None and not (1 <= len(self.owner) <= 200 and is_storable(self.owner)):
            raise Refused("A job's owner has 1 to 200 characters, none of them NUL.")
        if self.queue is not None and not is_name(self.queue):
            raise Refused(f"{self.queue[:80]!r} is no queue: queues are lower case letters, digits and _, at most 63.")
        if not -32768 <= self.priority <= 32767:
            raise Refused("A job's priority is between -32768 and 32767.")
        if not 1 <= self.cost < 2**63:
            raise Refused("A job's cost is a whole number from 1.")
        if not 0 <= self.delay <= _LONGEST:
            raise Refused("A job's delay is between 0 seconds and ten years.")
        if self.run_at is not None:
            if self.run_at.tzinfo is None:
                raise Refused("A job's run_at needs a time zone.")
            if not _EARLIEST < self.run_at < _LATEST:
                raise Refused("A job's run_at is between the years 1970 and 3000.")
        if self.traceparent is not None and not (len(self.traceparent) <= 200 and is_storable(self.traceparent)):
            raise Refused("A job's traceparent is at most 200 characters, none of them NUL.")


@dataclass(frozen=True, slots=True)
class Enqueued:
    id: uuid.UUID
    created: bool
    """False when a job with the same unique key was there already; `id` is then that one's."""


async def enqueue(on: Connection | AsyncSession, job: NewJob, *, as_operator: bool = False) -> Enqueued:
    """Enqueue one job in the caller's transaction. An operator's may have any priority."""
    return (await enqueue_many(on, [job], as_operator=as_operator))[0]


async def enqueue_many(
    on: Connection | AsyncSession, jobs: Sequence[NewJob], *, as_operator: bool = False
) -> list[Enqueued]:
    """Enqueue many jobs at once; the answer is in their order."""
    connection = await driver(on) if isinstance(on, AsyncSession) else on
    return await insert(connection, jobs, as_operator=as_operator)


async def insert(
    connection: Connection,
    jobs: Sequence[NewJob],
    *,
    parent_id: uuid.UUID | None = None,
    as_operator: bool = False,
) -> list[Enqueued]:
    """The same for the engine itself. Whoever names a parent counts the created ones there: see `families`."""
    if not jobs:
        return []
    if not as_operator and any(job.priority > 0 for job in jobs):
        # In ascending order, so that each tenant's highest is what remains.
        await check_granted(connection, dict(sorted((job.tenant, job.priority) for job in jobs)))
    if len(jobs) >= _WORTH_COPYING and not any(job.unique for job in jobs):
        await _copy(connection, jobs, parent_id)
        return [Enqueued(job.id, created=True) for job in jobs]
    await _free_passed_windows(connection, jobs)
    found: dict[uuid.UUID, Enqueued] = {}
    missing = list(jobs)
    # A job that holds a key may end between the two statements; then the key is free, and the next round takes it.
    for _ in range(5):
        created = {row["id"] for row in await connection.fetch(_INSERT, *_columns(missing), parent_id)}
        found |= {job_id: Enqueued(job_id, created=True) for job_id in created}
        missing = [job for job in missing if job.id not in created]
        if missing:
            found |= await _existing(connection, missing)
            missing = [job for job in missing if job.id not in found]
        if not missing:
            return [found[job.id] for job in jobs]
    raise Conflict(f"The unique key {_key(missing[0])!r} is contended. Try again.")


async def _copy(connection: Connection, jobs: Sequence[NewJob], parent_id: uuid.UUID | None) -> None:
    """The same as `_INSERT` for many jobs without keys, in half the time. COPY asks about no conflicts."""
    try:
        # Inside the caller's transaction this is a savepoint: an id that is taken must not end it.
        async with connection.transaction():
            now = await connection.fetchval("SELECT now()")
            times = [job.run_at or (now + timedelta(seconds=job.delay) if job.delay else now) for job in jobs]
            await connection.copy_records_to_table(
                "jobs",
                columns=_COPIED,
                records=[
                    (
                        job.id,
                        job.tenant,
                        job.owner or job.tenant,
                        job.kind.name,
                        job.queue or job.kind.queue,
                        job.priority,
                        job.cost,
                        "scheduled" if run_at > now else "queued",
                        payload_json(job),
                        job.kind.retry.max_attempts,
                        job.kind.max_crashes,
                        job.kind.time_limit,
                        run_at,
                        job.traceparent,
                        now,
                        now,
                        parent_id,
                        parent_id is not None,
                    )
                    for job, run_at in zip(jobs, times, strict=True)
                ],
            )
            await connection.execute(_TELL, *_news(jobs, times, now))
    except asyncpg.UniqueViolationError as error:
        raise Refused("There is a job with one of these ids already.") from error


def _news(jobs: Sequence[NewJob], times: Sequence[datetime], now: datetime) -> tuple[list[str], list[str]]:
    """What workers are told when the transaction commits, as in `_INSERT`."""
    lanes: dict[tuple[str, str, int, str], uuid.UUID] = {}
    due: datetime | None = None
    for job, run_at in zip(jobs, times, strict=True):
        if run_at > now:
            due = min(due, run_at) if due else run_at
            continue
        lane = (job.queue or job.kind.queue, job.kind.name, job.priority, job.tenant)
        first = lanes.get(lane)
        if first is None or job.id.int < first.int:
            lanes[lane] = job.id
    if len(lanes) > _MANY_LANES:
        told = sorted({queue for queue, _, _, _ in lanes})
    else:
        told = [json.dumps([*lane, str(first)]) for lane, first in lanes.items()]
    channels = ["waybill_jobs"] * len(told)
    if due is not None:
        channels.append("waybill_scheduled")
        told.append(str((due - now).total_seconds()))
    return channels, told


async def _free_passed_windows(connection: Connection, jobs: Sequence[NewJob]) -> None:
    kept = {
        (job.tenant, job.kind.name, job.unique.key)
        for job in jobs
        if job.unique is not None and job.unique.scope is not UniqueScope.ACTIVE
    }
    if kept:
        await connection.execute(_FREE_PASSED_WINDOWS, *(list(column) for column in zip(*sorted(kept), strict=True)))


async def _existing(connection: Connection, jobs: Sequence[NewJob]) -> dict[uuid.UUID, Enqueued]:
    """Which jobs hold the keys of `jobs`."""
    wanted = []
    for job in jobs:
        if job.unique is None:
            raise Refused(f"There is a job with the id {job.id} already.")
        wanted.append((job.tenant, job.kind.name, job.unique.key, job.unique.scope.value))
    rows = await connection.fetch(_FIND_EXISTING, *(list(column) for column in zip(*wanted, strict=True)))
    return {jobs[row["position"] - 1].id: Enqueued(row["id"], created=False) for row in rows}


def _key(job: NewJob) -> str | None:
    return job.unique.key if job.unique else None


def _columns(jobs: Sequence[NewJob]) -> list[list[Any]]:
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
        )
        for job in jobs
    ]
    return [list(column) for column in zip(*rows, strict=True)]


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode


def payload_json(job: NewJob) -> str:
    """A job's payload as it is stored; refused if it cannot be."""
    if not job.payload:
        return "{}"
    try:
        text = _encode(job.payload)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"A job's payload is JSON: {error}") from error
    if size > MAX_PAYLOAD:
        raise Refused(f"A job's payload is at most {MAX_PAYLOAD} bytes of JSON; keep the rest in storage.")
    if "u0000" in text and _NUL_IN_JSON.search(text):
        raise Refused("A job's payload has no NUL characters.")
    return text
