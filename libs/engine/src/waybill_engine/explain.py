"""Why isn't it running? One short, true answer for any job, from one look at the database.

The rules are those of the claim (`rules`, `caps`). Reasons are tried in the order in which they would have to be
removed: nobody needs to know how many jobs are ahead in a queue that is paused.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from waybill.errors import NotFound
from waybill_engine.breaker_models import BreakerState
from waybill_engine.caps import RUNNING_ON_WORKER
from waybill_engine.models import State
from waybill_engine.rates import RATE_OPENS_AT
from waybill_engine.rules import WORKER_MAY_CLAIM, caps_on, kind_is_blocked, queue_is_paused, rates_on

if TYPE_CHECKING:
    from waybill.db.database import Connection

_MOST_COUNTED = 1000
"""Beyond this many jobs ahead, nobody cares about the number, and counting them would cost too much."""

_SERVES_THE_JOB = f"""{WORKER_MAY_CLAIM} AND NOT workers.isolating
                  AND jobs.kind = ANY (workers.kinds) AND jobs.queue = ANY (workers.queues)"""

# Ahead are the jobs that are claimed before it whoever's turn it is: the older ones of its own lane, and those of a
# higher priority that its workers serve. Other tenants, and other kinds of its own tenant, take turns with it. LIMIT
# bounds the counting, because a page may ask this every few seconds.
_LOOK = f"""
SELECT now() AS now, jobs.id, jobs.kind, jobs.queue, jobs.state, jobs.run_at, jobs.attempts, jobs.max_attempts,
       jobs.isolate, jobs.error_code, jobs.error_message, jobs.finished_at, jobs.started_at,
       jobs.children, jobs.pending_children,
       jobs.cancel_requested_at IS NOT NULL AS stopping,
       queues.paused_at, queues.paused_reason,
       owner.name AS worker, owner.lease_expires_at,
       breakers.name AS dependency, breakers.state AS breaker, breakers.open_until, breakers.reason AS breaker_reason,
       full_cap.tenant AS cap_tenant, full_cap.kind AS cap_kind, full_cap.most AS cap_most,
       full_cap.running AS cap_running,
       closed_rate.tenant AS rate_tenant, closed_rate.kind AS rate_kind, closed_rate.most AS rate_most,
       closed_rate.seconds AS rate_seconds, closed_rate.opens_at AS rate_opens_at,
       serving.workers, sharing.turns,
       CASE WHEN jobs.state = 'queued' AND NOT jobs.isolate THEN ahead.jobs END AS ahead
  FROM jobs
  LEFT JOIN queues ON queues.name = jobs.queue
  LEFT JOIN kinds ON kinds.name = jobs.kind
  LEFT JOIN breakers ON breakers.name = kinds.dependency AND breakers.state <> 'closed'
  LEFT JOIN workers AS owner ON owner.id = jobs.lease_owner
  LEFT JOIN LATERAL (
           SELECT caps.tenant, caps.kind, caps.most, counted.running
             FROM {caps_on("jobs")} AS caps, LATERAL (
                      SELECT COALESCE(sum({RUNNING_ON_WORKER}), 0)::bigint AS running
                        FROM workers
                       WHERE workers.state IN ('active', 'draining')
                  ) AS counted
            WHERE counted.running >= caps.most AND jobs.state = 'queued'
            ORDER BY caps.id
            LIMIT 1
       ) AS full_cap ON true
  LEFT JOIN LATERAL (
           SELECT paced.tenant, paced.kind, paced.most, paced.seconds, {RATE_OPENS_AT} AS opens_at
             FROM {rates_on("jobs")} AS paced
            WHERE {RATE_OPENS_AT} > now() AND jobs.state = 'queued'
            ORDER BY opens_at DESC
            LIMIT 1
       ) AS closed_rate ON true,
       LATERAL (
           SELECT count(*) AS workers FROM workers WHERE {_SERVES_THE_JOB}
       ) AS serving,
       LATERAL (
           SELECT array_agg(queue) AS queues, array_agg(kind) AS kinds
             FROM (SELECT DISTINCT queue, kind
                     FROM workers, unnest(workers.queues) AS queue, unnest(workers.kinds) AS kind
                    WHERE {_SERVES_THE_JOB}
                      AND NOT {queue_is_paused("queue")}
                      AND NOT {kind_is_blocked("kind")}) AS lanes
       ) AS served,
       LATERAL (
           SELECT count(*) AS jobs
             FROM (SELECT FROM unnest(served.queues, served.kinds) AS lane (queue, kind), LATERAL (
                       (SELECT FROM jobs AS other
                         WHERE other.queue = lane.queue AND other.kind = lane.kind AND other.isolate = false
                           AND other.priority > jobs.priority AND other.state = 'queued'
                         LIMIT $2 + 1)
                       UNION ALL
                       (SELECT FROM jobs AS other
                         WHERE other.queue = lane.queue AND other.kind = lane.kind AND other.isolate = false
                           AND other.priority = jobs.priority AND other.tenant = jobs.tenant AND other.id < jobs.id
                           AND other.state = 'queued' AND lane.kind = jobs.kind AND lane.queue = jobs.queue
                         LIMIT $2 + 1)
                   ) AS earlier
                    LIMIT $2 + 1) AS counted
       ) AS ahead,
       LATERAL (
           SELECT EXISTS (
                      SELECT FROM unnest(served.queues, served.kinds) AS lane (queue, kind), LATERAL (
                          (SELECT FROM jobs AS other
                            WHERE other.queue = lane.queue AND other.kind = lane.kind AND other.isolate = false
                              AND other.priority = jobs.priority AND other.tenant < jobs.tenant
                              AND other.state = 'queued'
                            LIMIT 1)
                          UNION ALL
                          (SELECT FROM jobs AS other
                            WHERE other.queue = lane.queue AND other.kind = lane.kind AND other.isolate = false
                              AND other.priority = jobs.priority AND other.tenant > jobs.tenant
                              AND other.state = 'queued'
                            LIMIT 1)
                          UNION ALL
                          (SELECT FROM jobs AS other
                            WHERE other.queue = lane.queue AND other.kind = lane.kind AND other.isolate = false
                              AND other.priority = jobs.priority AND other.tenant = jobs.tenant
                              AND other.state = 'queued' AND (lane.kind <> jobs.kind OR lane.queue <> jobs.queue)
                            LIMIT 1)
                      ) AS other
                  ) AS turns
       ) AS sharing
 WHERE jobs.id = $1
"""  # noqa: S608 - made of constants


class Reason(StrEnum):
    ENDED = "ended"
    STOPPING = "stopping"
    RUNNING = "running"
    SCHEDULED = "scheduled"
    CHILDREN = "children"
    QUEUE_PAUSED = "queue_paused"
    NO_WORKER = "no_worker"
    BREAKER = "breaker"
    CAP = "cap"
    RATE = "rate"
    ISOLATED = "isolated"
    BEHIND_OTHERS = "behind_others"
    NEXT = "next"


@dataclass(frozen=True, slots=True)
class Explanation:
    reason: Reason
    sentence: str
    facts: Mapping[str, Any]
    """What the sentence says, as data for programs: times, counts, names."""


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
    if job["pending_children"]:
        return Explanation(
            Reason.CHILDREN,
            f"It is waiting for {job['pending_children']:,} of {_children(job['children'])}.",
            {"pending_children": job["pending_children"], "children": job["children"]},
        )
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
    facts = {"worker": job["worker"], "lease_expires_at": job["lease_expires_at"], "started_at": job["started_at"]}
    if job["stopping"]:
        return Explanation(Reason.STOPPING, f"Worker {job['worker']} was asked to stop it.", facts)
    if job["lease_expires_at"] <= job["now"]:
        return Explanation(
            Reason.RUNNING,
            f"Worker {job['worker']}, which holds it, was last due to report at {_at(job['lease_expires_at'])}; "
            "if it does not come back, another worker takes the job.",
            facts,
        )
    return Explanation(
        Reason.RUNNING,
        f"Worker {job['worker']} is running it; its lease lasts until {_at(job['lease_expires_at'])}.",
        facts,
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
    if job["breaker"] is not None:
        return _blocked(job)
    if job["cap_most"] is not None:
        return _capped(job)
    if job["rate_most"] is not None:
        return _paced(job)
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
    if job["turns"]:
        return Explanation(
            Reason.NEXT,
            "It is the first of its tenant's jobs of this kind; it takes turns with others for the next free slot.",
            {"queue": job["queue"], "takes_turns": True},
        )
    return Explanation(
        Reason.NEXT,
        "It is next: the first worker with a free slot takes it.",
        {"queue": job["queue"], "takes_turns": False},
    )


def _of(tenant: str | None, kind: str | None) -> str:
    return " ".join(
        part for part in (f"of kind {kind}" if kind else "", f"of tenant {tenant}" if tenant else "") if part
    )


def _paced(job: Mapping[str, Any]) -> Explanation:
    tenant, kind, most, seconds = job["rate_tenant"], job["rate_kind"], job["rate_most"], job["rate_seconds"]
    jobs = "job" if most == 1 else "jobs"
    time = "second" if seconds == 1 else f"{seconds:,g} seconds"
    return Explanation(
        Reason.RATE,
        f"At most {most:,} {jobs} {_of(tenant, kind)} may start in {'a ' if seconds == 1 else ''}{time}; "
        f"the next may start at {_at(job['rate_opens_at'])}.",
        {"tenant": tenant, "kind": kind, "most": most, "seconds": seconds, "opens_at": job["rate_opens_at"]},
    )


def _capped(job: Mapping[str, Any]) -> Explanation:
    who = _of(job["cap_tenant"], job["cap_kind"])
    jobs = "job" if job["cap_most"] == 1 else "jobs"
    do = "does" if job["cap_running"] == 1 else "do"
    return Explanation(
        Reason.CAP,
        f"At most {job['cap_most']:,} {jobs} {who} may run at once, and {job['cap_running']:,} {do}.",
        {
            "tenant": job["cap_tenant"],
            "kind": job["cap_kind"],
            "most": job["cap_most"],
            "running": job["cap_running"],
        },
    )


def _blocked(job: Mapping[str, Any]) -> Explanation:
    if job["breaker"] == BreakerState.HALF_OPEN:
        how = "half open: a few jobs find out whether it is well again, the others wait for them."
    else:
        until = f"until {_at(job['open_until'])}" if job["open_until"] else "until an operator resets it"
        how = f"open {until}" + (f" ({job['breaker_reason']})." if job["breaker_reason"] else ".")
    return Explanation(
        Reason.BREAKER,
        f"The breaker of {job['dependency']} is {how}",
        {
            "dependency": job["dependency"],
            "breaker": job["breaker"],
            "open_until": job["open_until"],
            "reason": job["breaker_reason"],
        },
    )


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _children(count: int) -> str:
    return "1 child" if count == 1 else f"{count:,} children"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
