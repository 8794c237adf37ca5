"""Step 1: a job comes into being.

Inside the caller's transaction, so that it exists exactly if the caller's own rows do. One statement takes one job or
many; workers are told when the transaction commits.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.db.database import driver
from waybill.errors import Conflict, Refused
from waybill.ids import new_id
from waybill.jobs.kinds import JobKind, is_name
from waybill.storable import is_storable

if TYPE_CHECKING:
    from waybill.db.database import Connection

_LONGEST = 10 * 366 * 86400.0
"""Seconds nobody plans beyond."""

_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

MAX_PAYLOAD = 64 * 1024
"""Bytes of JSON. Rows stay narrow; what is bigger belongs into storage, with its key in the payload."""

# `now() + delay` and the state are the database's to compute: its clock decides, not the caller's.
_INSERT = """
WITH new AS (
    SELECT n.*, COALESCE(n.at, now() + n.delay * interval '1 second') AS run_at
      FROM unnest(
               $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[], $8::text[],
               $9::smallint[], $10::smallint[], $11::real[], $12::timestamptz[], $13::float8[],
               $14::text[], $15::text[], $16::float8[], $17::uuid[], $18::text[]
           ) WITH ORDINALITY AS n (
               id, tenant, owner, kind, queue, priority, cost, payload,
               max_attempts, max_crashes, time_limit, at, delay,
               unique_key, unique_scope, unique_window, parent_id, traceparent, position
           )
), created AS (
    INSERT INTO jobs (
        id, tenant, owner, kind, queue, priority, cost, payload, max_attempts, max_crashes, time_limit,
        state, run_at, unique_key, unique_scope, unique_until, parent_id, traceparent, created_at, updated_at
    )
    SELECT id, tenant, owner, kind, queue, priority, cost, payload::jsonb, max_attempts, max_crashes, time_limit,
           CASE WHEN run_at > now() THEN 'scheduled' ELSE 'queued' END, run_at,
           unique_key, unique_scope, now() + unique_window * interval '1 second', parent_id, traceparent, now(), now()
      FROM new
     -- In the order of their keys: two callers with the same keys wait for each other in the same order.
     ORDER BY tenant, kind, unique_key, position
        ON CONFLICT DO NOTHING
    RETURNING id, queue, state, run_at
), told AS (
    -- Sent when the transaction commits: which queues have something, or in how many seconds something is due.
    SELECT count(pg_notify('waybill_jobs', queue))
      FROM (SELECT DISTINCT queue FROM created WHERE state = 'queued') AS queues
), told_later AS (
    SELECT count(pg_notify('waybill_scheduled', next_in::text))
      FROM (SELECT extract(epoch FROM min(run_at) - now()) AS next_in FROM created WHERE state = 'scheduled') AS due
     WHERE next_in IS NOT NULL
)
SELECT created.id FROM created, told, told_later
"""

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
    cost: int = 1
    delay: float = 0.0
    """Seconds from now, by the database's clock."""
    run_at: datetime | None = None
    """An absolute time instead of a delay."""
    unique: Unique | None = None
    parent_id: uuid.UUID | None = None
    traceparent: str | None = None
    id: uuid.UUID = field(default_factory=new_id)

    def __post_init__(self) -> None:
        # Refused here, because an error in the database would end the caller's transaction.
        for name, text, longest in (("tenant", self.tenant, 200), ("owner", self.owner, 200)):
            if text is not None and not (1 <= len(text) <= longest and is_storable(text)):
                raise Refused(f"A job's {name} has 1 to {longest} characters, none of them NUL.")
        if self.queue is not None and not is_name(self.queue):
            raise Refused(f"{self.queue[:80]!r} is no queue: queues are lower case letters, digits and _, at most 63.")
        if not -32768 <= self.priority <= 32767:
            raise Refused("A job's priority is between -32768 and 32767.")
        if not 1 <= self.cost < 2**63:
            raise Refused("A job's cost is a whole number from 1.")
        if not 0 <= self.delay <= _LONGEST:
            raise Refused("A job's delay is between 0 seconds and ten years.")
        if self.run_at is not None and self.run_at.tzinfo is None:
            raise Refused("A job's run_at needs a time zone.")
        if self.traceparent is not None and not (len(self.traceparent) <= 200 and is_storable(self.traceparent)):
            raise Refused("A job's traceparent is at most 200 characters, none of them NUL.")


@dataclass(frozen=True, slots=True)
class Enqueued:
    id: uuid.UUID
    created: bool
    """False when a job with the same unique key was there already; `id` is then that one's."""


async def enqueue(on: Connection | AsyncSession, job: NewJob) -> Enqueued:
    """Enqueue one job in the caller's transaction."""
    return (await enqueue_many(on, [job]))[0]


async def enqueue_many(on: Connection | AsyncSession, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Enqueue many jobs at once; the answer is in their order."""
    if not jobs:
        return []
    connection = await driver(on) if isinstance(on, AsyncSession) else on
    await _free_passed_windows(connection, jobs)
    found: dict[uuid.UUID, Enqueued] = {}
    missing = list(jobs)
    # A job that holds a key may end between the two statements; then the key is free, and the next round takes it.
    for _ in range(5):
        created = {row["id"] for row in await connection.fetch(_INSERT, *_columns(missing))}
        found |= {job_id: Enqueued(job_id, created=True) for job_id in created}
        missing = [job for job in missing if job.id not in created]
        if missing:
            found |= await _existing(connection, missing)
            missing = [job for job in missing if job.id not in found]
        if not missing:
            return [found[job.id] for job in jobs]
    raise Conflict(f"The unique key {_key(missing[0])!r} is contended. Try again.")


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
            _payload(job),
            job.kind.retry.max_attempts,
            job.kind.max_crashes,
            job.kind.time_limit,
            job.run_at,
            job.delay,
            _key(job),
            job.unique.scope.value if job.unique else None,
            job.unique.window if job.unique else None,
            job.parent_id,
            job.traceparent,
        )
        for job in jobs
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def _payload(job: NewJob) -> str:
    try:
        text = json.dumps(job.payload, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"A job's payload is JSON: {error}") from error
    if size > MAX_PAYLOAD:
        raise Refused(f"A job's payload is at most {MAX_PAYLOAD} bytes of JSON; keep the rest in storage.")
    if _NUL_IN_JSON.search(text):
        raise Refused("A job's payload has no NUL characters.")
    return text
