"""Step 4: a run ends. Every way in which it can end is written here, with its event.

Every write is fenced by job id, lease token and worker. The token alone would not do: after a failover that lost a
claim, or a restored backup, another worker claims the job under the same token.

`succeed` is the hot one: it writes many completions in one statement, or one inside a handler's own transaction.
`settle` writes everything else: failures, retries, releases, cancellations. Jobs whose end concerns others (a parent or
a later job of their sequence waits for them, or they tell their end) are written by a second statement, in one
transaction with the parent's count, with the next of the sequence, and with what listeners write.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import asyncpg

from waybill.errors import MEANINGS, Code
from waybill.failures import Failure
from waybill.pg_text import storable, storable_json
from waybill_engine.announcements import ANNOUNCE_DUE, ANNOUNCE_QUEUES
from waybill_engine.claim import ClaimedJob
from waybill_engine.endings import end_of_job, tell_ends
from waybill_engine.excuses import Excuse
from waybill_engine.families import children_ended
from waybill_engine.models import State
from waybill_engine.retry import RetryPolicy
from waybill_engine.sequences import advance, sequence_of

if TYPE_CHECKING:
    from waybill.db.database import Connection

# The primary key is the only way in: `= ANY` is a condition of its index whatever the planner thinks of the table, no
# index is partial on `state = 'running'`, and `IS TRUE` keeps the fence a look-up in a hash, not a join that could
# be turned around. For the owner, `IS TRUE` rules out the index `jobs_held`. Rows are found, and so locked, in the
# order of their ids.
#
# The answer is one row for any batch. It nearly always says "all of them", with NULL instead of the ids, so that a
# thousand ids need not be sent, read and compared.
_DONE = """
    UPDATE jobs
       SET state = 'succeeded', lease_owner = NULL, finished_at = now(), updated_at = now(), progress = 1,
           progress_message = NULL, isolate = false, error_code = NULL, error_message = NULL, error_detail = NULL
     WHERE id = ANY ($1::uuid[])
       AND ((id, lease_token) IN (SELECT * FROM unnest($1::uuid[], $2::int[]))) IS TRUE
       AND (lease_owner = $3) IS TRUE AND state = 'running'"""

_HISTORY = """
    INSERT INTO job_events (job_id, at, event, lease_token, worker_id, started_at)
    SELECT id, now(), 'succeeded', lease_token, $3, started_at FROM done"""

_SUCCEED = f"""
WITH done AS ({_DONE} AND NOT (awaited OR tells_end OR sequence_key IS NOT NULL)
    RETURNING id, lease_token, started_at
), history AS ({_HISTORY}
)
SELECT CASE WHEN count(*) < cardinality($1::uuid[]) THEN COALESCE(array_agg(id), '{{}}') END AS ids
  FROM done
"""  # noqa: S608 - made of constants

# All of what is left, whatever it says now: a job may have left its family while the first statement waited for it.
_SUCCEED_WITH_OTHERS = f"""
WITH done AS ({_DONE}
    RETURNING id, lease_token, started_at, CASE WHEN awaited THEN parent_id END AS awaited_by,
              {end_of_job("jobs")} AS told, {sequence_of("jobs")} AS sequence
), history AS ({_HISTORY}
)
SELECT id, awaited_by, told, sequence FROM done
"""  # noqa: S608 - made of constants

# A cancellation wins over a retry: a job that somebody asked to stop does not come back.
_SETTLE = f"""
WITH ended AS (
    UPDATE jobs
       SET state = CASE WHEN mine.comes_back AND jobs.cancel_requested_at IS NOT NULL THEN 'cancelled'
                        ELSE mine.state END,
           lease_owner = NULL,
           updated_at = now(),
           finished_at = CASE WHEN mine.comes_back AND jobs.cancel_requested_at IS NULL THEN NULL ELSE now() END,
           run_at = now() + mine.delay * interval '1 second',
           attempts = jobs.attempts + mine.charge,
           outages = jobs.outages + mine.outage::int,
           isolate = jobs.isolate AND mine.released,
           runnable_since = CASE WHEN mine.event <> 'snoozed' THEN jobs.runnable_since END,
           error_code = CASE WHEN mine.comes_back AND jobs.cancel_requested_at IS NOT NULL THEN 'CANCELLED'
                             WHEN mine.released THEN jobs.error_code ELSE mine.code END,
           error_message = CASE WHEN mine.comes_back AND jobs.cancel_requested_at IS NOT NULL THEN $13
                                WHEN mine.released THEN jobs.error_message ELSE mine.message END,
           error_detail = CASE WHEN mine.released THEN jobs.error_detail ELSE mine.detail::jsonb END
      FROM unnest($1::uuid[], $2::int[], $3::text[], $4::bool[], $5::bool[], $6::float8[], $7::int[],
                  $8::text[], $9::text[], $10::text[], $11::text[], $15::bool[])
           AS mine (id, token, state, comes_back, released, delay, charge, code, message, detail, event, outage)
     WHERE jobs.id = ANY ($1::uuid[])
       AND jobs.id = mine.id AND jobs.lease_token = mine.token AND (jobs.lease_owner = $12) IS TRUE
       AND jobs.state = 'running'
       AND (NOT (jobs.awaited OR jobs.tells_end OR jobs.sequence_key IS NOT NULL) OR $14)
    RETURNING jobs.id, jobs.lease_token, jobs.started_at, jobs.state, jobs.queue, jobs.attempts, jobs.run_at,
              CASE WHEN jobs.awaited AND jobs.finished_at IS NOT NULL THEN jobs.parent_id END AS awaited_by,
              {end_of_job("jobs")} AS told,
              CASE WHEN jobs.finished_at IS NOT NULL THEN {sequence_of("jobs")} END AS sequence,
              mine.event, mine.code, mine.message
), history AS (
    INSERT INTO job_events (job_id, at, event, lease_token, worker_id, started_at, detail)
    SELECT id, now(), CASE WHEN state = 'cancelled' THEN 'cancelled' ELSE event END, lease_token, $12, started_at,
           jsonb_strip_nulls(jsonb_build_object(
               'code', code, 'message', message, 'attempts', attempts,
               'retry_at', CASE WHEN state = 'scheduled' THEN run_at END))
      FROM ended
), ready AS (
    SELECT queue FROM ended WHERE state = 'queued'
), later AS (
    SELECT run_at FROM ended WHERE state = 'scheduled'
), {ANNOUNCE_QUEUES}, {ANNOUNCE_DUE}
SELECT ended.id, ended.state, ended.awaited_by, ended.told, ended.sequence FROM ended, announced, announced_due
"""  # noqa: S608 - made of constants

_LOCK = "SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE"

_LOCK_FREE = "SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED"

_DO_NOT_WAIT = "SET LOCAL lock_timeout = '200ms'"

# The job's row no longer says who completed it; its history does. OFFSET keeps the inner select from becoming a join,
# which could be turned around.
_SUCCEEDED_BY = """
SELECT mine.id
  FROM unnest($1::uuid[], $2::int[]) AS mine (id, token), LATERAL (
           SELECT FROM job_events
            WHERE job_id = mine.id AND event = 'succeeded' AND lease_token = mine.token AND worker_id = $3
           OFFSET 0
       ) AS done
"""


_OUTAGES = 10
"""So many runs of a job may end in an outage of the database without costing an attempt."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended, unless it succeeded."""

    state: State
    event: str
    delay: float = 0.0
    charge: int = 0
    code: str | None = None
    message: str | None = None
    detail: dict[str, Any] | None = None
    released: bool = False
    """The job is given back untouched: it keeps its attempts and its last error."""
    outage: bool = False
    """The database was away. The job remembers how often that happened."""


def released(reason: str) -> RunOutcome:
    return RunOutcome(State.QUEUED, "released", released=True, message=reason)


def cancelled(failure: Failure) -> RunOutcome:
    return RunOutcome(State.CANCELLED, "cancelled", code=failure.code, message=failure.message)


def judge(
    claimed: ClaimedJob,
    failure: Failure,
    policy: RetryPolicy,
    rng: random.Random | None = None,
    *,
    excuse: Excuse | None = None,
) -> RunOutcome:
    """What a failed run means for its job: try again later, give up, or wait as long as the other side asked.

    With an excuse the run costs nothing, because a dependency let it down.
    """
    facts: dict[str, Any] = {"code": failure.code.value, "message": failure.message, "detail": failure.detail}
    if not failure.retryable:
        return RunOutcome(State.FAILED, "failed", charge=1, **facts)
    if excuse is not None:
        return RunOutcome(State.SCHEDULED, "postponed", delay=excuse.delay(policy, rng), **facts)
    # An outage is nobody's fault. But a job whose every run ends in one may be what takes the database down.
    outage = failure.code is Code.DB_UNAVAILABLE
    if not failure.charged and not (outage and claimed.outages >= _OUTAGES):
        wait = failure.retry_after if failure.retry_after is not None else 1.0
        return RunOutcome(State.SCHEDULED, "postponed", delay=min(max(wait, 1.0), 3600.0), outage=outage, **facts)
    if claimed.attempts + 1 >= claimed.max_attempts:
        return RunOutcome(State.DEAD_LETTER, "dead_lettered", charge=1, **facts)
    return RunOutcome(State.SCHEDULED, "retry_scheduled", delay=policy.delay(claimed.attempts, rng), charge=1, **facts)


async def succeed(
    connection: Connection, worker_id: uuid.UUID, done: Sequence[tuple[uuid.UUID, int]]
) -> set[uuid.UUID]:
    """Complete jobs, and return those that were still this worker's to complete."""
    ordered = sorted(done, key=itemgetter(0))  # multi-row updates lock in id order
    ids, tokens = [one[0] for one in ordered], [one[1] for one in ordered]
    ended = await connection.fetchval(_SUCCEED, ids, tokens, worker_id)
    if ended is None:
        return set(ids)
    async with _shared_transaction(connection):
        rows = await connection.fetch(_SUCCEED_WITH_OTHERS, ids, tokens, worker_id)
        await _concern_others(connection, rows)
    return {*ended, *(row["id"] for row in rows)}


async def settle(
    connection: Connection, worker_id: uuid.UUID, ends: Sequence[tuple[uuid.UUID, int, RunOutcome]]
) -> dict[uuid.UUID, State]:
    """Write ends other than success, and return the state of each job now, without those that were lost."""
    ordered = sorted(ends, key=itemgetter(0))
    ids = [job_id for job_id, _, _ in ordered]
    outcomes = [outcome for _, _, outcome in ordered]
    arguments = (
        [token for _, token, _ in ordered],
        [outcome.state.value for outcome in outcomes],
        [not outcome.state.final for outcome in outcomes],
        [outcome.released for outcome in outcomes],
        [outcome.delay for outcome in outcomes],
        [outcome.charge for outcome in outcomes],
        [outcome.code for outcome in outcomes],
        [storable(outcome.message) if outcome.message else None for outcome in outcomes],
        [json.dumps(storable_json(outcome.detail)) if outcome.detail else None for outcome in outcomes],
        [outcome.event for outcome in outcomes],
        worker_id,
        MEANINGS[Code.CANCELLED].sentence,
    )
    outages = [outcome.outage for outcome in outcomes]
    rows = await connection.fetch(_SETTLE, ids, *arguments, False, outages)
    if len(rows) < len(ids):
        async with _shared_transaction(connection):
            told = await connection.fetch(_SETTLE, ids, *arguments, True, outages)
            await _concern_others(connection, told)
        rows += told
    return {row["id"]: State(row["state"]) for row in rows}


async def _concern_others(connection: Connection, ended: Iterable[asyncpg.Record]) -> None:
    """Do what the ends of these jobs mean for others: their parents, the next of their sequences, and listeners."""
    ended = list(ended)
    await children_ended(connection, [row["awaited_by"] for row in ended])
    await advance(connection, [row["sequence"] for row in ended])
    await tell_ends(connection, [row["told"] for row in ended])


def _shared_transaction(connection: Connection) -> AbstractAsyncContextManager[object]:
    """A transaction for the jobs that the first statement left out: their end concerns others, or they were lost.

    Inside a handler's transaction it does nothing: a savepoint would only keep the parent locked for longer.
    """
    return nullcontext() if connection.is_in_transaction() else connection.transaction()


async def succeed_where_free(
    connection: Connection, worker_id: uuid.UUID, runs: Sequence[tuple[uuid.UUID, int]]
) -> tuple[set[uuid.UUID], set[uuid.UUID]]:
    """Complete the jobs that nobody else has locked. Returns those it completed, and those it could not get hold of."""
    ids = {job_id for job_id, _ in runs}
    try:
        async with connection.transaction():
            await connection.execute(_DO_NOT_WAIT)  # not for a parent either
            free = {row["id"] for row in await connection.fetch(_LOCK_FREE, list(ids))}
            return await succeed(connection, worker_id, [run for run in runs if run[0] in free]), ids - free
    except asyncpg.LockNotAvailableError:
        return set(), ids


async def succeeded_by(
    connection: Connection, worker_id: uuid.UUID, runs: Sequence[tuple[uuid.UUID, int]]
) -> set[uuid.UUID]:
    """Those of the jobs that these runs of this worker completed, once whoever is writing them has finished.

    It answers the question that a lost connection leaves open: did my COMMIT arrive? The row locks wait for a commit
    that is still under way on the server. Call it in a transaction.
    """
    ids, tokens = [job_id for job_id, _ in runs], [token for _, token in runs]
    await connection.execute(_LOCK, ids)
    # A statement of its own, so that it sees what was committed while we waited.
    return {row["id"] for row in await connection.fetch(_SUCCEEDED_BY, ids, tokens, worker_id)}
