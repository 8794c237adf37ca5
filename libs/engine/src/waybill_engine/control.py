"""What a person may do to jobs and queues: cancel, retry, prioritise, purge, pause, resume.

Each acts on the states it is meant for and leaves an event. Nothing here waits for a worker: a running job is asked to
stop, and its worker is woken to hear it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import asyncpg

from waybill.errors import Conflict, NotFound, Refused
from waybill.retention import let_holds_wait
from waybill_engine.families import await_again, children_ended, lock_family
from waybill_engine.models import State

if TYPE_CHECKING:
    from waybill.db.database import Connection

# All of these change jobs that were locked by a statement before: one that had to wait for the lock would otherwise mix
# what it saw before with what it found after.

# A parent that waited for its children waits for nothing any more.
_CANCEL_WAITING = """
WITH cancelled AS (
    UPDATE jobs
       SET state = 'cancelled', cancel_requested_at = now(), finished_at = now(), updated_at = now(),
           error_code = 'CANCELLED', error_message = $2, error_detail = NULL,
           run_at = CASE WHEN pending_children > 0 THEN now() ELSE run_at END, pending_children = 0
     WHERE id = ANY ($1::uuid[]) AND state IN ('scheduled', 'queued')
    RETURNING id, CASE WHEN awaited THEN parent_id END AS awaited_by
), history AS (
    INSERT INTO job_events (job_id, at, event, detail)
    SELECT id, now(), 'cancelled', jsonb_build_object('message', $2::text) FROM cancelled
)
SELECT id, awaited_by FROM cancelled
"""

# `waybill_control` wakes exactly the workers that run them. Asked twice, the first time counts.
_ASK_TO_STOP = """
WITH asked AS (
    UPDATE jobs SET cancel_requested_at = now(), updated_at = now()
     WHERE id = ANY ($1::uuid[]) AND cancel_requested_at IS NULL
    RETURNING id
), history AS (
    INSERT INTO job_events (job_id, at, event, detail)
    SELECT id, now(), 'cancel_requested', jsonb_build_object('message', $2::text) FROM asked
)
SELECT pg_notify('waybill_control', lease_owner::text)
  FROM (SELECT DISTINCT lease_owner FROM jobs WHERE id = ANY ($1::uuid[])) AS holders
"""

# What still runs below a cancelled parent is no longer waited for; what is above goes on waiting.
_LEAVE_FAMILY = "UPDATE jobs SET awaited = false WHERE id = ANY ($1::uuid[]) AND id <> $2 AND awaited"

_AWAIT = "UPDATE jobs SET awaited = true WHERE id = ANY ($1::uuid[])"

# A fresh start: attempts and crashes from zero. The token is never reset, and a job that ran alone still does. With
# children that are active, it waits for them once more.
_RETRY = """
WITH retried AS (
    UPDATE jobs
       SET state = CASE WHEN $3::int > 0 THEN 'scheduled' ELSE 'queued' END,
           run_at = CASE WHEN $3::int > 0 THEN 'infinity' ELSE now() END,
           progress = CASE WHEN $3::int > 0 THEN 1 - $3::real / children END,
           pending_children = $3::int, awaited = $4::bool,
           attempts = 0, crashes = 0, cancel_requested_at = NULL, finished_at = NULL, progress_message = NULL,
           updated_at = now()
     WHERE id = $1
    RETURNING id, queue, state
), history AS (
    INSERT INTO job_events (job_id, at, event, detail)
    SELECT id, now(), 'retried', jsonb_build_object('message', $2::text) FROM retried
)
SELECT pg_notify('waybill_jobs', queue) FROM retried WHERE state = 'queued'
"""

_LOCK = "SELECT state FROM jobs WHERE id = $1 FOR UPDATE"

# A job that waits moves to another lane; the announcement says which.
_PRIORITISE = """
WITH moved AS (
    UPDATE jobs SET priority = $2, updated_at = now() WHERE id = $1 RETURNING id, queue, kind, priority, tenant, state
), history AS (
    INSERT INTO job_events (job_id, at, event, detail)
    SELECT id, now(), 'prioritised', jsonb_build_object('priority', priority) FROM moved
)
SELECT pg_notify('waybill_jobs', json_build_array(queue, kind, priority, tenant, id)::text)
  FROM moved WHERE state = 'queued'
"""

_DEAD_LETTERS = """
SELECT id FROM jobs
 WHERE state = 'dead_letter' AND ($1::text IS NULL OR kind = $1) AND ($2::text IS NULL OR tenant = $2) AND id > $3
 ORDER BY id
 LIMIT $4
"""

# Ids carry their time, so the primary key finds what is old. Only finished jobs go, with all that belongs to them, and
# none that somebody pinned or whose tenant is under legal hold.
_PURGE = """
WITH old AS MATERIALIZED (
    SELECT id FROM jobs
     WHERE finished_at < now() - $1 * interval '1 second' AND state = ANY ($2::text[])
       AND ($3::text IS NULL OR kind = $3) AND ($4::text IS NULL OR tenant = $4) AND id > $5
       AND pinned_at IS NULL
       AND NOT EXISTS (SELECT FROM tenants WHERE tenants.name = jobs.tenant AND hold_at IS NOT NULL)
     ORDER BY id
     LIMIT $6
       FOR UPDATE SKIP LOCKED
), events AS (
    DELETE FROM job_events WHERE job_id = ANY (ARRAY(SELECT id FROM old))
), artefacts AS (
    DELETE FROM job_artefacts WHERE job_id = ANY (ARRAY(SELECT id FROM old))
)
DELETE FROM jobs WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING id
"""

_PAUSE = """
INSERT INTO queues (name, paused_at, paused_reason) VALUES ($1, now(), $2)
    ON CONFLICT (name) DO UPDATE SET paused_at = COALESCE(queues.paused_at, now()), paused_reason = $2
"""

_RESUME = """
WITH resumed AS (
    DELETE FROM queues WHERE name = $1 AND paused_at IS NOT NULL RETURNING name
)
SELECT count(pg_notify('waybill_jobs', name)) FROM resumed
"""

_RETRYABLE = frozenset({State.FAILED, State.DEAD_LETTER, State.CANCELLED})

_NIL = uuid.UUID(int=0)


@dataclass(frozen=True, slots=True)
class CancelResult:
    state: State
    """`cancelled`, or `running` when its worker was asked to stop it."""
    below: int = 0
    """How many jobs of its family were cancelled with it, at once."""
    stopping: frozenset[uuid.UUID] = frozenset()
    """Which jobs, it or others of its family, were running and have been asked to stop."""


async def cancel(connection: Connection, job_id: uuid.UUID, reason: str = "Cancelled by an operator") -> CancelResult:
    """Whoever waits is cancelled at once; whoever runs is asked to stop. With a parent goes everything below it."""
    async with connection.transaction():
        family = {member.id: member for member in await lock_family(connection, job_id)}
        if (state := family[job_id].state).final:
            raise Conflict(f"Job {job_id} has ended already: it is {state}.")
        cancelled = await connection.fetch(_CANCEL_WAITING, list(family), reason)
        running = family.keys() - {row["id"] for row in cancelled}
        if running:
            await connection.execute(_ASK_TO_STOP, list(running), reason)
            await connection.execute(_LEAVE_FAMILY, list(running), job_id)
        # Below it nobody waits any more; above it somebody may.
        await children_ended(connection, [row["awaited_by"] for row in cancelled if row["id"] == job_id])
    if state is State.RUNNING:
        return CancelResult(state, len(cancelled), frozenset(running))
    return CancelResult(State.CANCELLED, len(cancelled) - 1, frozenset(running))


async def retry(connection: Connection, job_id: uuid.UUID, reason: str = "Retried by an operator") -> State:
    """Queue an ended job again. One whose unique key another job holds meanwhile is refused.

    A parent that still waits, waits for this one too. A parent that is retried waits for those of its children that
    are active; its answer is then `scheduled`.
    """
    try:
        async with connection.transaction():
            family = await lock_family(connection, job_id)
            (job,) = [member for member in family if member.id == job_id]
            if job.state not in _RETRYABLE:
                raise Conflict(
                    f"Only failed, dead-lettered or cancelled jobs can be retried; job {job_id} is {job.state}."
                )
            pending = [member.id for member in family if member.parent_id == job_id]
            if pending:
                await connection.execute(_AWAIT, pending)
            awaited = job.parent_id is not None and await await_again(connection, job.parent_id)
            await connection.execute(_RETRY, job_id, reason, len(pending), awaited)
            return State.SCHEDULED if pending else State.QUEUED
    except asyncpg.UniqueViolationError as error:
        raise Conflict(f"Another job with the same unique key is active; job {job_id} cannot run beside it.") from error


async def prioritise(connection: Connection, job_id: uuid.UUID, priority: int) -> State:
    """Give a job that waits another priority. An operator's word: no grant is asked for. The answer is its state."""
    if not -32768 <= priority <= 32767:
        raise Refused("A job's priority is between -32768 and 32767.")
    async with connection.transaction():
        found = await connection.fetchval(_LOCK, job_id)
        if found is None:
            raise NotFound(f"There is no job {job_id}.")
        state = State(found)
        if state not in (State.QUEUED, State.SCHEDULED):
            raise Conflict(f"Only jobs that wait can be given another priority; job {job_id} is {state}.")
        await connection.execute(_PRIORITISE, job_id, priority)
    return state


async def retry_dead_letters(
    connection: Connection, *, kind: str | None = None, tenant: str | None = None, limit: int = 10_000
) -> tuple[list[uuid.UUID], list[uuid.UUID]]:
    """Retry everything in the dead-letter queue, oldest first: what was queued again, and what had to be left."""
    retried: list[uuid.UUID] = []
    left: list[uuid.UUID] = []
    after = _NIL
    while len(retried) < limit:
        rows = await connection.fetch(_DEAD_LETTERS, kind, tenant, after, min(500, limit - len(retried)))
        if not rows:
            break
        for row in rows:
            after = row["id"]
            try:
                await retry(connection, after)
                retried.append(after)
            except (Conflict, NotFound):  # its key is taken, or somebody was faster
                left.append(after)
    return retried, left


async def purge(
    connection: Connection,
    *,
    older_than: timedelta,
    states: Sequence[State],
    kind: str | None = None,
    tenant: str | None = None,
    batch: int = 1000,
) -> int:
    """Delete finished jobs with their history, in short transactions. Their stored files become garbage."""
    if not all(state.final for state in states):
        raise ValueError("only finished jobs can be purged")
    deleted = 0
    after = _NIL
    while True:
        async with connection.transaction():
            await let_holds_wait(connection)
            rows = await connection.fetch(_PURGE, older_than.total_seconds(), states, kind, tenant, after, batch)
        if not rows:
            return deleted
        deleted += len(rows)
        after = max(row["id"] for row in rows)


async def pause(connection: Connection, queue: str, reason: str | None = None) -> None:
    """Hold a queue: what runs goes on, nothing new starts."""
    await connection.execute(_PAUSE, queue, reason)


async def resume(connection: Connection, queue: str) -> bool:
    """Open a queue again. False if it was not paused."""
    return bool(await connection.fetchval(_RESUME, queue))
