"""What a person may do to jobs and queues: cancel, retry, delete, prioritise, pause, resume. `bulk` acts on many.

Each function acts only on jobs in the states it is meant for, and leaves an event. None waits for a worker: a running
job is asked to stop, and its worker is woken up to hear it.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg

from waybill import audit
from waybill.errors import Conflict, NotFound, Refused
from waybill.retention.holds import let_holds_wait, refuse_if_held
from waybill_engine import counts_of_jobs, retention, shelf
from waybill_engine.announcements import ANNOUNCE_LANES, ANNOUNCE_QUEUES
from waybill_engine.audit_notes import note_job, note_jobs
from waybill_engine.endings import end_of_job, tell_ends
from waybill_engine.families import await_again, children_ended, lock_family
from waybill_engine.job_traces import tell_retries
from waybill_engine.models import State
from waybill_engine.sequences import advance, sequence_of

if TYPE_CHECKING:
    from waybill.db.database import Connection

# All of these change jobs that an earlier statement has locked: a statement that waited for the lock itself would mix
# what it saw before with what it found afterwards.

# A parent that waited for its children, and a job that waited for its turn, no longer wait for anything.
_CANCEL_WAITING = f"""
WITH cancelled AS (
    UPDATE jobs
       SET state = 'cancelled', cancel_requested_at = now(), finished_at = now(), updated_at = now(),
           error_code = 'CANCELLED', error_message = $2, error_detail = NULL,
           run_at = CASE WHEN run_at = 'infinity' THEN now() ELSE run_at END, pending_children = 0, parked_for = NULL
     WHERE id = ANY ($1::uuid[]) AND state IN ('scheduled', 'queued')
    RETURNING id, kind, tenant, CASE WHEN awaited THEN parent_id END AS awaited_by, {end_of_job("jobs")} AS told,
              {sequence_of("jobs")} AS sequence
), history AS (
    INSERT INTO job_events (job_id, at, event, detail)
    SELECT id, now(), 'cancelled', jsonb_build_object('message', $2::text) FROM cancelled
)
SELECT id, kind, tenant, awaited_by, told, sequence FROM cancelled
"""  # noqa: S608 - made of constants

# `waybill_control` wakes exactly the workers that run these jobs. If somebody asks twice, the first time counts.
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
  FROM (SELECT DISTINCT lease_owner FROM jobs WHERE id = ANY ($1::uuid[])) AS owners
"""

# Nobody waits any more for jobs that still run below a cancelled parent; jobs above it go on waiting.
_LEAVE_FAMILY = "UPDATE jobs SET awaited = false WHERE id = ANY ($1::uuid[]) AND id <> $2 AND awaited"

_AWAIT = "UPDATE jobs SET awaited = true WHERE id = ANY ($1::uuid[])"

# A fresh start: attempts and crashes start from zero. The token is never reset, and a job that ran alone still does. A
# job with active children waits for them once more. A job of a sequence goes to its end.
_RETRY = f"""
WITH retried AS (
    UPDATE jobs
       SET state = CASE WHEN mine.pending > 0 OR jobs.sequence_key IS NOT NULL THEN 'scheduled' ELSE 'queued' END,
           run_at = CASE WHEN mine.pending > 0 OR jobs.sequence_key IS NOT NULL THEN 'infinity' ELSE now() END,
           parked_for = CASE WHEN jobs.sequence_key IS NOT NULL THEN now() END,
           sequence_position = CASE WHEN jobs.sequence_key IS NOT NULL THEN nextval('job_positions') END,
           progress = CASE WHEN mine.pending > 0 THEN 1 - mine.pending::real / jobs.children END,
           pending_children = mine.pending, awaited = mine.awaited,
           attempts = 0, crashes = 0, outages = 0, cancel_requested_at = NULL, finished_at = NULL,
           progress_message = NULL, updated_at = now(), runnable_since = NULL
      FROM unnest($1::uuid[], $3::int[], $4::bool[]) AS mine (id, pending, awaited)
     WHERE jobs.id = ANY ($1::uuid[]) AND jobs.id = mine.id
    RETURNING jobs.id, jobs.tenant, jobs.kind, jobs.queue, jobs.state, jobs.lease_token, jobs.traceparent,
              jobs.tracestate, {sequence_of("jobs")} AS sequence
), history AS (
    INSERT INTO job_events (job_id, at, event, detail)
    SELECT id, now(), 'retried', jsonb_build_object('message', $2::text) FROM retried
), ready AS (
    SELECT queue FROM retried WHERE state = 'queued'
), {ANNOUNCE_QUEUES}
SELECT retried.id, retried.tenant, retried.kind, retried.queue, retried.lease_token, retried.traceparent,
       retried.tracestate, retried.sequence
  FROM retried, announced
"""  # noqa: S608 - made of constants

_LOCK_TO_DELETE = "SELECT state, tenant, pinned_at IS NOT NULL AS pinned FROM jobs WHERE id = $1 FOR UPDATE"

_LOCK = "SELECT state FROM jobs WHERE id = $1 FOR UPDATE"

# A queued job moves to another lane, which is announced.
_PRIORITISE = f"""
WITH moved AS (
    UPDATE jobs SET priority = $2, updated_at = now()
     WHERE id = $1
    RETURNING id, queue, kind, priority, tenant, owner, created_at, state
), history AS (
    INSERT INTO job_events (job_id, at, event, detail)
    SELECT id, now(), 'prioritised', jsonb_build_object('priority', priority) FROM moved
), ready AS (
    SELECT queue, kind, priority, tenant, owner, created_at, 1 AS jobs FROM moved WHERE state = 'queued'
), {ANNOUNCE_LANES}
SELECT lanes FROM announced
"""  # noqa: S608 - made of constants

# Queued jobs move to another lane.
_HAND_OVER = f"""
WITH moved AS (
    UPDATE jobs SET owner = $2 WHERE id = ANY ($1::uuid[])
    RETURNING queue, kind, priority, tenant, owner, created_at, state
), ready AS (
    SELECT queue, kind, priority, tenant, owner, created_at, 1 AS jobs FROM moved WHERE state = 'queued'
), {ANNOUNCE_LANES}
SELECT lanes FROM announced
"""  # noqa: S608 - made of constants

_NOTE = """
INSERT INTO job_events (job_id, at, event, detail)
VALUES ($1, now(), $2, jsonb_build_object('message', $3::text))
"""

_PAUSE = """
INSERT INTO queues (name, paused_at, paused_reason) VALUES ($1, now(), $2)
    ON CONFLICT (name) DO UPDATE SET paused_at = COALESCE(queues.paused_at, now()), paused_reason = $2
"""

_RESUME = f"""
WITH ready AS (
    DELETE FROM queues WHERE name = $1 AND paused_at IS NOT NULL RETURNING name AS queue
), {ANNOUNCE_QUEUES}
SELECT queues FROM announced
"""  # noqa: S608 - made of constants

RETRYABLE = frozenset({State.FAILED, State.DEAD_LETTER, State.CANCELLED})


@dataclass(frozen=True, slots=True)
class CancelResult:
    state: State
    """`cancelled`, or `running` if its worker was asked to stop it."""
    below: int = 0
    """How many jobs below it were cancelled at once."""
    stopping: frozenset[uuid.UUID] = frozenset()
    """The jobs of its family, itself included, that were running and have been asked to stop."""


async def cancel(connection: Connection, job_id: uuid.UUID, reason: str = "Cancelled by an operator") -> CancelResult:
    """Cancel a job and everything below it: jobs that wait at once, running jobs by asking them to stop."""
    async with connection.transaction():
        family = {member.id: member for member in await lock_family(connection, job_id)}
        if (state := family[job_id].state).final:
            raise Conflict(f"Job {job_id} has ended already: it is {state}.")
        cancelled = await connection.fetch(_CANCEL_WAITING, list(family), reason)
        running = family.keys() - {row["id"] for row in cancelled}
        if running:
            await connection.execute(_ASK_TO_STOP, list(running), reason)
            await connection.execute(_LEAVE_FAMILY, list(running), job_id)
        # Nobody below it waits any more; its own parent may.
        await children_ended(connection, [row["awaited_by"] for row in cancelled if row["id"] == job_id])
        await advance(connection, [row["sequence"] for row in cancelled])
        await tell_ends(connection, [row["told"] for row in cancelled])
        counts_of_jobs.cancelled(connection, ((row["kind"], row["tenant"]) for row in cancelled))
        await note_job(connection, "job.cancelled", job_id, reason=reason, below=len(family) - 1)
    if state is State.RUNNING:
        return CancelResult(state, len(cancelled), frozenset(running))
    return CancelResult(State.CANCELLED, len(cancelled) - 1, frozenset(running))


async def cancel_childless(
    connection: Connection, job_ids: Sequence[uuid.UUID], reason: str
) -> tuple[list[uuid.UUID], list[uuid.UUID]]:
    """Cancel active jobs without children that the caller has locked: which were cancelled, and which must stop."""
    cancelled = await connection.fetch(_CANCEL_WAITING, job_ids, reason)
    done = {row["id"] for row in cancelled}
    running = [job_id for job_id in job_ids if job_id not in done]
    if running:
        await connection.execute(_ASK_TO_STOP, running, reason)
    await children_ended(connection, [row["awaited_by"] for row in cancelled])
    await advance(connection, [row["sequence"] for row in cancelled])
    await tell_ends(connection, [row["told"] for row in cancelled])
    counts_of_jobs.cancelled(connection, ((row["kind"], row["tenant"]) for row in cancelled))
    await note_jobs(connection, "jobs.cancelled", job_ids, reason=reason)
    return sorted(done), running


async def retry(connection: Connection, job_id: uuid.UUID, reason: str = "Retried by an operator") -> State:
    """Queue an ended job again. Raises Conflict if another job has its unique key by now.

    If its parent still waits, the parent waits for this job too. A parent that is retried waits for those of its
    children that are active. A job of a sequence waits for the jobs that are in it by now. The answer is `scheduled`
    for a job that waits.
    """
    try:
        async with connection.transaction():
            family = await lock_family(connection, job_id)
            (job,) = [member for member in family if member.id == job_id]
            if job.state not in RETRYABLE:
                raise Conflict(
                    f"Only failed, dead-lettered or cancelled jobs can be retried; job {job_id} is {job.state}."
                )
            pending = [member.id for member in family if member.parent_id == job_id]
            if pending:
                await connection.execute(_AWAIT, pending)
            awaited = job.parent_id is not None and await await_again(connection, job.parent_id)
            retried = await connection.fetch(_RETRY, [job_id], reason, [len(pending)], [awaited])
            await advance(connection, [row["sequence"] for row in retried])
            tell_retries(retried)
            await note_job(connection, "job.retried", job_id, reason=reason)
            return State(await connection.fetchval(_LOCK, job_id))
    except asyncpg.UniqueViolationError as error:
        raise Conflict(f"Another job with the same unique key is active; job {job_id} cannot run beside it.") from error


async def retry_childless(connection: Connection, parents: Mapping[uuid.UUID, uuid.UUID | None], reason: str) -> None:
    """Queue ended jobs without children again, given with their parents and locked by the caller.

    None may have a unique key while active: a collision would undo all of them.
    """
    wanted = Counter(parent_id for parent_id in parents.values() if parent_id is not None)
    # The youngest parent first, as whoever locks several parents does.
    waiting = {one: await await_again(connection, one, wanted[one]) for one in sorted(wanted, reverse=True)}
    awaited = [parent_id is not None and waiting[parent_id] for parent_id in parents.values()]
    retried = await connection.fetch(_RETRY, list(parents), reason, [0] * len(parents), awaited)
    await advance(connection, [row["sequence"] for row in retried])
    tell_retries(retried)
    await note_jobs(connection, "jobs.retried", list(parents), reason=reason)


async def delete(connection: Connection, job_id: uuid.UUID) -> State:
    """Delete an ended job with its history, and return how it had ended. The janitor removes its stored files."""
    async with connection.transaction():
        await let_holds_wait(connection)
        job = await connection.fetchrow(_LOCK_TO_DELETE, job_id)
        if job is None and await shelf.unshelve(connection, [job_id]):
            job = await connection.fetchrow(_LOCK_TO_DELETE, job_id)
        if job is None:
            raise NotFound(f"There is no job {job_id}.")
        if not (state := State(job["state"])).final:
            raise Conflict(f"Only ended jobs can be deleted; job {job_id} is {state}. Cancel it first.")
        if job["pinned"]:
            raise Conflict(f"Job {job_id} is pinned: somebody wants to keep it.")
        await refuse_if_held(connection, job["tenant"])
        await note_job(connection, "job.deleted", job_id, state=state)
        await retention.delete(connection, [job_id])
    return state


async def prioritise(connection: Connection, job_id: uuid.UUID, priority: int) -> State:
    """Give a waiting job another priority, as an operator: it needs no grant. Returns the job's state."""
    if not -32768 <= priority <= 32767:
        raise Refused("A job's priority must be between -32768 and 32767.")
    async with connection.transaction():
        state = await lock(connection, job_id)
        if state is None:
            raise NotFound(f"There is no job {job_id}.")
        if state not in (State.QUEUED, State.SCHEDULED):
            raise Conflict(f"Only jobs that wait can be given another priority; job {job_id} is {state}.")
        await connection.execute(_PRIORITISE, job_id, priority)
        await note_job(connection, "job.prioritised", job_id, priority=priority)
    return state


async def lock(connection: Connection, job_id: uuid.UUID) -> State | None:
    """Lock a job until the transaction ends, so that nobody moves it meanwhile; its state, None if it is not there."""
    found = await connection.fetchval(_LOCK, job_id)
    if found is None and await shelf.unshelve(connection, [job_id]):
        found = await connection.fetchval(_LOCK, job_id)
    return State(found) if found is not None else None


async def hand_over(connection: Connection, job_ids: Sequence[uuid.UUID], owner: str) -> None:
    """Make jobs that the caller has locked another owner's. Their tenant stays: who pays is decided once."""
    await connection.execute(_HAND_OVER, job_ids, owner)


async def note(connection: Connection, job_id: uuid.UUID, event: str, message: str) -> None:
    """Add a line to a job's history, about what a pipeline let somebody do with it."""
    await connection.execute(_NOTE, job_id, event, message)


async def pause(connection: Connection, queue: str, reason: str | None = None) -> None:
    """Pause a queue: running jobs go on, and no new ones start."""
    async with connection.transaction():
        await connection.execute(_PAUSE, queue, reason)
        await audit.record(connection, "queue.paused", f"queue:{queue}", detail={"reason": reason})


async def resume(connection: Connection, queue: str) -> bool:
    """Resume a paused queue. False if it was not paused."""
    async with connection.transaction():
        resumed = bool(await connection.fetchval(_RESUME, queue))
        if resumed:
            await audit.record(connection, "queue.resumed", f"queue:{queue}")
    return resumed
