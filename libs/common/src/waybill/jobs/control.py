"""What a person may do to jobs and queues: cancel, retry, purge, pause, resume.

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

from waybill.errors import Conflict, NotFound
from waybill.jobs.models import State

if TYPE_CHECKING:
    from waybill.db.database import Connection

# Locked first, changed by a second statement: one that had to wait for the lock would otherwise mix what it saw
# before with what it found after.
_LOCK = "SELECT state FROM jobs WHERE id = $1 FOR UPDATE"

_CANCEL_WAITING = """
WITH cancelled AS (
    UPDATE jobs
       SET state = 'cancelled', cancel_requested_at = now(), finished_at = now(), updated_at = now(),
           error_code = 'CANCELLED', error_message = $2, error_detail = NULL
     WHERE id = $1
    RETURNING id
)
INSERT INTO job_events (job_id, at, event, detail)
SELECT id, now(), 'cancelled', jsonb_build_object('message', $2::text) FROM cancelled
"""

# `waybill_control` wakes exactly the worker that runs it. Asked twice, the first time counts.
_ASK_TO_STOP = """
WITH asked AS (
    UPDATE jobs SET cancel_requested_at = now(), updated_at = now()
     WHERE id = $1 AND cancel_requested_at IS NULL
    RETURNING id
), history AS (
    INSERT INTO job_events (job_id, at, event, detail)
    SELECT id, now(), 'cancel_requested', jsonb_build_object('message', $2::text) FROM asked
)
SELECT pg_notify('waybill_control', lease_owner::text) FROM jobs WHERE id = $1
"""

# A fresh start: attempts and crashes from zero. The token is never reset, and a job that ran alone still does.
_RETRY = """
WITH retried AS (
    UPDATE jobs
       SET state = 'queued', attempts = 0, crashes = 0, run_at = now(), cancel_requested_at = NULL,
           finished_at = NULL, progress = NULL, progress_message = NULL, updated_at = now()
     WHERE id = $1
    RETURNING id, queue
), history AS (
    INSERT INTO job_events (job_id, at, event, detail)
    SELECT id, now(), 'retried', jsonb_build_object('message', $2::text) FROM retried
)
SELECT pg_notify('waybill_jobs', queue) FROM retried
"""

_DEAD_LETTERS = """
SELECT id FROM jobs
 WHERE state = 'dead_letter' AND ($1::text IS NULL OR kind = $1) AND ($2::text IS NULL OR tenant = $2) AND id > $3
 ORDER BY id
 LIMIT $4
"""

# Ids carry their time, so the primary key finds what is old. Only finished jobs go, with all that belongs to them.
_PURGE = """
WITH old AS MATERIALIZED (
    SELECT id FROM jobs
     WHERE finished_at < now() - $1 * interval '1 second' AND state = ANY ($2::text[])
       AND ($3::text IS NULL OR kind = $3) AND ($4::text IS NULL OR tenant = $4) AND id > $5
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


async def cancel(connection: Connection, job_id: uuid.UUID, reason: str = "Cancelled by an operator") -> CancelResult:
    """Whoever waits is cancelled at once; whoever runs is asked to stop."""
    async with connection.transaction():
        state = await _lock(connection, job_id)
        if state.final:
            raise Conflict(f"Job {job_id} has ended already: it is {state}.")
        if state is State.RUNNING:
            await connection.execute(_ASK_TO_STOP, job_id, reason)
            return CancelResult(State.RUNNING)
        await connection.execute(_CANCEL_WAITING, job_id, reason)
        return CancelResult(State.CANCELLED)


async def retry(connection: Connection, job_id: uuid.UUID, reason: str = "Retried by an operator") -> None:
    """Queue an ended job again. One whose unique key another job holds meanwhile is refused."""
    try:
        async with connection.transaction():
            state = await _lock(connection, job_id)
            if state not in _RETRYABLE:
                raise Conflict(f"Only failed, dead-lettered or cancelled jobs can be retried; job {job_id} is {state}.")
            await connection.execute(_RETRY, job_id, reason)
    except asyncpg.UniqueViolationError as error:
        raise Conflict(f"Another job with the same unique key is active; job {job_id} cannot run beside it.") from error


async def _lock(connection: Connection, job_id: uuid.UUID) -> State:
    state = await connection.fetchval(_LOCK, job_id)
    if state is None:
        raise NotFound(f"There is no job {job_id}.")
    return State(state)


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
    """Delete finished jobs with their history, in short transactions. Stored files stay."""
    if not all(state.final for state in states):
        raise ValueError("only finished jobs can be purged")
    deleted = 0
    after = _NIL
    while True:
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
