"""Why isn't it running? One short, true answer for any job, from one look at the database.

The reasons are tried in the order in which they would have to be removed: nobody needs to know how many jobs are
ahead in a queue that is paused.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from waybill.errors import NotFound
from waybill.jobs.models import State

if TYPE_CHECKING:
    from waybill.db.database import Connection

_MOST_COUNTED = 1000
"""Beyond this many jobs ahead nobody cares for the number, and counting them would cost."""

# Ahead are the jobs that a worker which serves this one would claim before it: of its queue, in the lanes those workers
# scan. LIMIT bounds the count; a page may ask this every few seconds.
_LOOK = """
SELECT now() AS now, jobs.id, jobs.kind, jobs.queue, jobs.state, jobs.run_at, jobs.attempts, jobs.max_attempts,
       jobs.isolate, jobs.error_code, jobs.error_message, jobs.finished_at, jobs.started_at,
       jobs.cancel_requested_at IS NOT NULL AS stopping,
       queues.paused_at, queues.paused_reason,
       holder.name AS worker, holder.lease_expires_at,
       serving.workers,
       CASE WHEN jobs.state = 'queued' AND NOT jobs.isolate THEN ahead.jobs END AS ahead
  FROM jobs
  LEFT JOIN queues ON queues.name = jobs.queue
  LEFT JOIN workers AS holder ON holder.id = jobs.lease_owner,
       LATERAL (
           SELECT count(DISTINCT workers.id) AS workers, array_agg(DISTINCT served) AS kinds
             FROM workers LEFT JOIN LATERAL unnest(workers.kinds) AS served ON true
            WHERE workers.state = 'active' AND workers.lease_expires_at > now() AND NOT workers.isolating
              AND jobs.kind = ANY (workers.kinds) AND jobs.queue = ANY (workers.queues)
       ) AS serving,
       LATERAL (
           SELECT count(*) AS jobs
             FROM (SELECT FROM unnest(serving.kinds) AS lane, LATERAL (
                       SELECT FROM jobs AS other
                        WHERE other.queue = jobs.queue AND other.kind = lane
                          AND other.state = 'queued' AND NOT other.isolate
                          AND (other.priority > jobs.priority
                               OR (other.priority = jobs.priority AND other.id < jobs.id))
                        LIMIT $2 + 1
                   ) AS earlier
                    LIMIT $2 + 1) AS counted
       ) AS ahead
 WHERE jobs.id = $1
"""


class Reason(StrEnum):
    ENDED = "ended"
    STOPPING = "stopping"
    RUNNING = "running"
    SCHEDULED = "scheduled"
    QUEUE_PAUSED = "queue_paused"
    NO_WORKER = "no_worker"
    ISOLATED = "isolated"
    BEHIND_OTHERS = "behind_others"
    NEXT = "next"


@dataclass(frozen=True, slots=True)
class Explanation:
    reason: Reason
    sentence: str
    facts: Mapping[str, Any]
    """What the sentence says, for programs: times, counts, names."""


async def explain(connection: Connection, job_id: uuid.UUID) -> Explanation:
    row = await connection.fetchrow(_LOOK, job_id, _MOST_COUNTED)
    if row is None:
        raise NotFound(f"There is no job {job_id}.")
    return _explained(dict(row))


def _explained(job: Mapping[str, Any]) -> Explanation:
    state = State(job["state"])
    if state.final:
        return _ended(job, state)
    if state is State.RUNNING:
        return _running(job)
    if state is State.SCHEDULED and job["run_at"] > job["now"]:
        again = f" It failed {_times(job['attempts'])} and is tried again then." if job["attempts"] else ""
        return Explanation(
            Reason.SCHEDULED,
            f"It is scheduled until {_at(job['run_at'])}.{again}",
            {"run_at": job["run_at"], "attempts": job["attempts"], "max_attempts": job["max_attempts"]},
        )
    return _waiting(job)


def _ended(job: Mapping[str, Any], state: State) -> Explanation:
    how = {
        State.SUCCEEDED: "It succeeded",
        State.FAILED: "It failed for good",
        State.DEAD_LETTER: "It was given up",
        State.CANCELLED: "It was cancelled",
    }[state]
    why = f" ({job['error_code']}): {job['error_message']}" if job["error_code"] else "."
    return Explanation(
        Reason.ENDED,
        f"{how} at {_at(job['finished_at'])}{why}",
        {"state": state.value, "finished_at": job["finished_at"], "error_code": job["error_code"]},
    )


def _running(job: Mapping[str, Any]) -> Explanation:
    held = {"worker": job["worker"], "lease_expires_at": job["lease_expires_at"], "started_at": job["started_at"]}
    if job["stopping"]:
        return Explanation(Reason.STOPPING, f"Worker {job['worker']} was asked to stop it.", held)
    if job["lease_expires_at"] <= job["now"]:
        return Explanation(
            Reason.RUNNING,
            f"Worker {job['worker']}, which holds it, was last due to report at {_at(job['lease_expires_at'])}; "
            "if it does not come back, another worker takes the job.",
            held,
        )
    return Explanation(
        Reason.RUNNING, f"It is held by worker {job['worker']} until {_at(job['lease_expires_at'])}.", held
    )


def _waiting(job: Mapping[str, Any]) -> Explanation:
    if job["paused_at"] is not None:
        why = f" ({job['paused_reason']})" if job["paused_reason"] else ""
        return Explanation(
            Reason.QUEUE_PAUSED,
            f"The queue {job['queue']} has been paused since {_at(job['paused_at'])}{why}.",
            {"queue": job["queue"], "paused_at": job["paused_at"], "paused_reason": job["paused_reason"]},
        )
    if job["workers"] == 0:
        return Explanation(
            Reason.NO_WORKER,
            f"No worker serves the kind {job['kind']} on the queue {job['queue']}.",
            {"kind": job["kind"], "queue": job["queue"]},
        )
    if job["isolate"]:
        return Explanation(
            Reason.ISOLATED, "It was running when a worker crashed; it waits to be run alone.", {"queue": job["queue"]}
        )
    if job["ahead"]:
        many = f"more than {_MOST_COUNTED:,}" if job["ahead"] > _MOST_COUNTED else f"{job['ahead']:,}"
        jobs = "job" if job["ahead"] == 1 else "jobs"
        return Explanation(
            Reason.BEHIND_OTHERS,
            f"It is waiting behind {many} {jobs}.",
            {"ahead": min(job["ahead"], _MOST_COUNTED), "or_more": job["ahead"] > _MOST_COUNTED},
        )
    return Explanation(Reason.NEXT, "It is next: the first worker with a free slot takes it.", {"queue": job["queue"]})


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
