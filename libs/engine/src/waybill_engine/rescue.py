"""Rescue: the jobs of a worker that is gone go back to their queues, and only the guilty job is charged.

A worker is gone when its lease ran out. All its jobs are judged together, in one transaction. If it ran only one job,
that job took it down and is charged a crash. If it ran several, any of them may have done it: none is charged, and all
are marked to run alone from now on. A job that crashes a worker while it runs alone is the guilty one. A job whose
circuit breaker is not closed, most likely a probe, is treated like one of several even if it ran alone: the
dependency's trouble may have taken the worker down. No job is charged when the worker had been told to stop, or when
its lease ran out while Postgres was down.

Whoever knows more about a worker's death says so (`Death`), and need not wait for its lease: a supervisor that saw the
process die, or the cluster that runs its pod (`pods.deaths`).

After an outage every lease has run out and nobody is to blame. So a worker that has not renewed its lease since the
server started, or since it became the primary, is first only marked as missed, and rescued when it has had time to come
back. The mark is in its row: it does not matter who looks, and how long they have been there.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncpg

from waybill.errors import MEANINGS, Code
from waybill.messages import Message
from waybill_engine import counts_of_jobs
from waybill_engine.announcements import ANNOUNCE_QUEUES
from waybill_engine.endings import end_of_job, tell_ends
from waybill_engine.families import children_ended
from waybill_engine.job_traces import tell_rescues
from waybill_engine.models import State, WorkerState
from waybill_engine.rules import kind_is_blocked, queue_is_paused
from waybill_engine.sequences import advance, sequence_of

if TYPE_CHECKING:
    from waybill.db.database import Connection

# A standby that is promoted goes on with the start time of its own; what it replayed last was the old primary's.
_IN_OUTAGE = "last_seen_at < GREATEST(pg_postmaster_start_time(), pg_last_xact_replay_timestamp())"

_EXPIRED = "state IN ('active', 'draining') AND lease_expires_at < now()"

_MISS = f"""
UPDATE workers SET missed_at = now()
 WHERE id = ANY (ARRAY(SELECT id FROM workers
                        WHERE {_EXPIRED} AND missed_at IS NULL AND {_IN_OUTAGE}
                        ORDER BY id
                          FOR UPDATE SKIP LOCKED))
"""  # noqa: S608 - made of constants

_LOCK_GONE = f"""
SELECT id, name, state, {_IN_OUTAGE} AS in_outage
  FROM workers
 WHERE {_EXPIRED} AND (NOT {_IN_OUTAGE} OR missed_at < now() - $1 * interval '1 second') AND id > $2
 ORDER BY id
 LIMIT 1
   FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - made of constants

# The same question without locks. LIMIT keeps the inner select from becoming a join, which could be turned around.
_TROUBLE = f"""
SELECT EXISTS (
           SELECT FROM workers
            WHERE {_EXPIRED}
              AND (NOT {_IN_OUTAGE} OR missed_at IS NULL OR missed_at < now() - $1 * interval '1 second')
       ) AS gone,
       EXISTS (
           SELECT FROM unnest($2::text[]) AS q (queue), unnest($3::text[]) AS k (kind),
                LATERAL (
                    SELECT id FROM jobs
                     WHERE jobs.queue = q.queue AND jobs.kind = k.kind AND isolate = true AND state = 'queued'
                     LIMIT 1
                ) AS suspect
            WHERE NOT {queue_is_paused("q.queue")}
       ) AS suspects
"""  # noqa: S608 - made of constants

# A frozen worker may sit in a transaction that locks its job. Its jobs are rescued once the server has ended that
# transaction; until then it must not keep the rescue of others waiting.
DO_NOT_WAIT = "SET LOCAL lock_timeout = '500ms'"

# Its supervisor saw it die, so its lease need not run out.
_LOCK_DEAD = """
SELECT id, name, state, false AS in_outage FROM workers
 WHERE id = $1 AND state IN ('active', 'draining')
   FOR UPDATE
"""

# Jobs are found by their owner but locked by their ids, in order. A job that ended while we waited for its lock is not
# this worker's any more.
_LOCK_RUNNING = f"""
WITH running AS MATERIALIZED (
    SELECT id FROM jobs WHERE lease_owner = $1
)
SELECT id, attempts, max_attempts, crashes, max_crashes, isolate, cancel_requested_at IS NOT NULL AS stop,
       {kind_is_blocked("jobs.kind")} AS excused
  FROM jobs
 WHERE id = ANY (ARRAY(SELECT id FROM running)) AND (lease_owner = $1) IS TRUE
 ORDER BY id
   FOR UPDATE
"""  # noqa: S608 - made of constants

_RETURN = f"""
WITH returned AS (
    UPDATE jobs
       SET state = verdict.state, lease_owner = NULL, updated_at = now(), run_at = now(),
           finished_at = CASE WHEN verdict.state = 'queued' THEN NULL ELSE now() END,
           attempts = attempts + verdict.charge, crashes = crashes + verdict.charge,
           isolate = isolate OR verdict.suspect,
           error_code = COALESCE(verdict.code, error_code), error_message = COALESCE(verdict.message, error_message),
           error_detail = CASE WHEN verdict.code IS NULL THEN error_detail ELSE verdict.detail::jsonb END
      FROM unnest($1::uuid[], $2::text[], $3::int[], $4::text[], $5::text[], $6::text[], $9::bool[], $10::text[])
           AS verdict (id, state, charge, event, code, message, suspect, detail)
     WHERE jobs.id = ANY ($1::uuid[]) AND jobs.id = verdict.id
    RETURNING jobs.id, jobs.tenant, jobs.kind, jobs.queue, jobs.state, jobs.lease_token, jobs.started_at, jobs.crashes,
              jobs.attempts - verdict.charge + 1 AS attempt, jobs.traceparent, jobs.tracestate, verdict.event,
              extract(epoch FROM now() - jobs.runnable_since)::float8 AS seconds,
              CASE WHEN jobs.awaited AND jobs.finished_at IS NOT NULL THEN jobs.parent_id END AS awaited_by,
              {end_of_job("jobs")} AS told,
              CASE WHEN jobs.finished_at IS NOT NULL THEN {sequence_of("jobs")} END AS sequence
), history AS (
    INSERT INTO job_events (job_id, at, event, lease_token, worker_id, started_at, detail)
    SELECT id, now(), event, lease_token, $7, started_at,
           jsonb_build_object('worker', $8::text, 'crashes', crashes) || COALESCE($11::jsonb, '{{}}')
      FROM returned
), ready AS (
    SELECT queue FROM returned WHERE state = 'queued'
), {ANNOUNCE_QUEUES}
SELECT returned.id, returned.tenant, returned.kind, returned.queue, returned.state, returned.lease_token,
       returned.started_at, returned.attempt, returned.traceparent, returned.tracestate, returned.event,
       returned.seconds, returned.awaited_by, returned.told, returned.sequence
  FROM returned, announced
"""  # noqa: S608 - made of constants

# As if they had been told to stop: nobody's crash is the reason why they are not here.
_TELL_ALL_TO_STOP = "UPDATE workers SET state = 'draining' WHERE state IN ('active', 'draining') RETURNING id"

_WORKERS_AT_ONCE = 20

_MARK_GONE = "UPDATE workers SET state = 'gone', stopped_at = now() WHERE id = $1"


@dataclass(frozen=True, slots=True)
class Death:
    """How a worker died, if that is known."""

    cause: str
    """One word for it, as `pods.verdicts.Fate` has them."""
    says: Message
    charged: bool
    """A job may be to blame. If not, all are released."""
    in_spite_of_drain: bool = False
    """A job may be to blame even if the worker had been told to stop."""
    together: bool = False
    """Jobs in other processes died with it."""

    @property
    def detail(self) -> dict[str, Any]:
        return {"cause": self.cause, "key": self.says.key, "params": dict(self.says.params)}


@dataclass(frozen=True, slots=True)
class Rescued:
    id: uuid.UUID
    event: str
    """`crashed`, `suspected`, `released`, `dead_lettered` or `cancelled`."""
    worker: str


@dataclass(frozen=True, slots=True)
class Trouble:
    gone: bool
    """Some worker's lease has run out, and its jobs are to be returned or it is to be marked as missed."""
    suspects: bool
    """Suspects of a crash wait to be run alone."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    state: State
    event: str
    charge: int = 0
    code: Code | None = None
    death: Death | None = None
    """How its worker died, if that is what the job is charged for."""

    @property
    def message(self) -> str | None:
        if self.code is None:
            return None
        return str(self.death.says) if self.death else MEANINGS[self.code].sentence

    @property
    def detail(self) -> str | None:
        return json.dumps(self.death.detail) if self.death else None


async def look_for_trouble(
    connection: Connection, queues: Sequence[str], kinds: Sequence[str], *, settle_time: float
) -> Trouble:
    """Whether a worker is gone, and whether suspects of a crash wait to be run alone."""
    row = await connection.fetchrow(_TROUBLE, settle_time, queues, kinds)
    assert row is not None, "a row of sub-selects always answers"  # noqa: S101
    return Trouble(gone=row["gone"], suspects=row["suspects"])


async def rescue(connection: Connection, *, settle_time: float) -> list[Rescued]:
    """Return the jobs of every worker whose lease ran out.

    Workers whose lease ran out in an outage of the database get `settle_time` seconds to come back.
    """
    await connection.execute(_MISS)
    rescued: list[Rescued] = []
    last = uuid.UUID(int=0)
    for _ in range(_WORKERS_AT_ONCE):
        try:
            async with connection.transaction():
                await connection.execute(DO_NOT_WAIT)
                worker = await connection.fetchrow(_LOCK_GONE, settle_time, last)
                if worker is None:
                    break
                last = worker["id"]
                rescued += await return_jobs(connection, worker)
        except asyncpg.LockNotAvailableError:
            continue
    return rescued


async def rescue_worker(connection: Connection, worker_id: uuid.UUID) -> list[Rescued]:
    """Return the jobs of a worker that is known to be dead, without waiting for its lease."""
    async with connection.transaction():
        return [
            one
            for worker in await connection.fetch(_LOCK_DEAD, worker_id)
            for one in await return_jobs(connection, worker)
        ]


async def release_all(connection: Connection) -> list[Rescued]:
    """Return every running job of a database that was restored from a backup, and charge none of them.

    Their workers ran on another database. The caller makes sure that no worker runs on this one.
    """
    async with connection.transaction():
        workers = sorted(row["id"] for row in await connection.fetch(_TELL_ALL_TO_STOP))
        return [one for worker in workers for one in await rescue_worker(connection, worker)]


async def return_jobs(connection: Connection, worker: asyncpg.Record, death: Death | None = None) -> list[Rescued]:
    """Return the jobs of a worker, whose row the caller's transaction has locked, and mark it as gone."""
    running = await connection.fetch(_LOCK_RUNNING, worker["id"])
    draining = worker["state"] == WorkerState.DRAINING and not (death and death.in_spite_of_drain)
    alone = len(running) == 1 and not worker["in_outage"] and not (death and death.together)
    verdicts = [_judge(job, draining=draining, alone=alone, death=death) for job in running]
    rows = await connection.fetch(
        _RETURN,
        [job["id"] for job in running],
        [verdict.state.value for verdict in verdicts],
        [verdict.charge for verdict in verdicts],
        [verdict.event for verdict in verdicts],
        [verdict.code for verdict in verdicts],
        [verdict.message for verdict in verdicts],
        worker["id"],
        worker["name"],
        [verdict.event != "released" for verdict in verdicts],
        [verdict.detail for verdict in verdicts],
        json.dumps({**death.detail, "message": str(death.says)}) if death else None,
    )
    await children_ended(connection, [row["awaited_by"] for row in rows])
    await advance(connection, [row["sequence"] for row in rows])
    await tell_ends(connection, [row["told"] for row in rows])
    await connection.execute(_MARK_GONE, worker["id"])
    counts_of_jobs.rescued(connection, rows)
    tell_rescues(rows, worker["name"])
    return [Rescued(row["id"], row["event"], worker["name"]) for row in rows]


def _judge(job: asyncpg.Record, *, draining: bool, alone: bool, death: Death | None) -> _Verdict:
    if job["stop"]:
        return _Verdict(State.CANCELLED, "cancelled", code=Code.CANCELLED)
    if draining:  # it had been told to stop and was killed when its time was up: a deploy, not a crash
        return _Verdict(State.QUEUED, "released")
    if death is not None and not death.charged:
        return _Verdict(State.QUEUED, "released")
    if not alone or (job["excused"] and not job["isolate"]):
        return _Verdict(State.QUEUED, "suspected")
    if job["crashes"] + 1 >= job["max_crashes"] or job["attempts"] + 1 >= job["max_attempts"]:
        return _Verdict(State.DEAD_LETTER, "dead_lettered", charge=1, code=Code.WORKER_CRASHED, death=death)
    return _Verdict(State.QUEUED, "crashed", charge=1, code=Code.WORKER_CRASHED, death=death)
