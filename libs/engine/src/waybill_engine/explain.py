"""Why isn't it running? One short, true answer for any job, from one look at the database.

The rules are those of the claim (`rules`, `caps`). Reasons are tried in the order in which they would have to be
removed: nobody needs to know how many jobs are ahead in a queue that is paused. An answer is a message, so that a page
can say it in the reader's language; its words are in the table `explain` of the platform's catalogues.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from waybill.errors import NotFound
from waybill.messages import Message, msg
from waybill_engine.breaker_models import BreakerState
from waybill_engine.caps import RUNNING_ON_WORKER
from waybill_engine.models import State
from waybill_engine.rates import RATE_OPENS_AT
from waybill_engine.rules import (
    BREAKER_LIMITS,
    WORKER_MAY_CLAIM,
    caps_on,
    dependencies_of,
    kind_is_blocked,
    queue_is_paused,
    rates_on,
)
from waybill_engine.sequences import holds_place, in_sequence, parked

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
       jobs.isolate, jobs.error_code, jobs.error_message, jobs.error_detail, jobs.finished_at, jobs.started_at,
       jobs.children, jobs.pending_children,
       {parked("jobs")} AS parked, jobs.sequence_key, jobs.sequence_at_once, earlier.jobs AS earlier,
       jobs.cancel_requested_at IS NOT NULL AS stopping,
       queues.paused_at, queues.paused_reason,
       owner.name AS worker, owner.lease_expires_at,
       breaker.name AS dependency, breaker.state AS breaker, breaker.open_until, breaker.reason AS breaker_reason,
       breaker.cooldown_until,
       full_cap.tenant AS cap_tenant, full_cap.kind AS cap_kind, full_cap.most AS cap_most,
       full_cap.running AS cap_running,
       closed_rate.tenant AS rate_tenant, closed_rate.kind AS rate_kind, closed_rate.most AS rate_most,
       closed_rate.seconds AS rate_seconds, closed_rate.opens_at AS rate_opens_at,
       serving.workers, sharing.turns,
       CASE WHEN jobs.state = 'queued' AND NOT jobs.isolate THEN ahead.jobs END AS ahead
  FROM jobs
  LEFT JOIN queues ON queues.name = jobs.queue
  LEFT JOIN kinds ON kinds.name = jobs.kind
  LEFT JOIN LATERAL (
           SELECT name, state, open_until, reason, cooldown_until FROM breakers
            WHERE breakers.name = ANY ({dependencies_of("kinds")}) AND {BREAKER_LIMITS}
            ORDER BY breakers.state <> 'open', breakers.state = 'closed', breakers.name
            LIMIT 1
       ) AS breaker ON true
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
           SELECT count(*) AS jobs
             FROM ((SELECT FROM jobs AS other
                     WHERE {in_sequence("other", "jobs")} AND {holds_place("other")} AND {parked("jobs")}
                     LIMIT $2 + 1)
                   UNION ALL
                   (SELECT FROM jobs AS other
                     WHERE {in_sequence("other", "jobs")} AND {parked("other")} AND {parked("jobs")}
                       AND other.sequence_position < jobs.sequence_position
                     LIMIT $2 + 1)
                    LIMIT $2 + 1) AS counted
       ) AS earlier,
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
                           AND other.priority = jobs.priority AND other.tenant = jobs.tenant
                           AND other.owner = jobs.owner AND (other.created_at, other.id) < (jobs.created_at, jobs.id)
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
                              AND other.priority = jobs.priority
                              AND (other.tenant, other.owner) < (jobs.tenant, jobs.owner)
                              AND other.state = 'queued'
                            LIMIT 1)
                          UNION ALL
                          (SELECT FROM jobs AS other
                            WHERE other.queue = lane.queue AND other.kind = lane.kind AND other.isolate = false
                              AND other.priority = jobs.priority
                              AND (other.tenant, other.owner) > (jobs.tenant, jobs.owner)
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

# Whatever is on the shelf has ended.
_LOOK_ON_SHELF = """
SELECT state, finished_at, error_code, error_message, error_detail FROM shelved_jobs WHERE id = $1
"""


class Reason(StrEnum):
    ENDED = "ended"
    STOPPING = "stopping"
    RUNNING = "running"
    SCHEDULED = "scheduled"
    CHILDREN = "children"
    SEQUENCE = "sequence"
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
    says: Message
    facts: Mapping[str, Any]
    """What the sentence says, as data for programs: times, counts, names."""

    @property
    def sentence(self) -> str:
        """The answer in English."""
        return str(self.says)

    @property
    def key(self) -> str:
        """The message's key: one reason can be said in several ways."""
        return self.says.key

    @property
    def params(self) -> Mapping[str, Any]:
        """The message's parameters. Times are times, not text."""
        return self.says.params


async def explain(connection: Connection, job_id: uuid.UUID) -> Explanation:
    row = await connection.fetchrow(_LOOK, job_id, _MOST_COUNTED)
    row = row or await connection.fetchrow(_LOOK_ON_SHELF, job_id)
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
            msg("explain.children", pending=job["pending_children"], count=job["children"]),
            {"pending_children": job["pending_children"], "children": job["children"]},
        )
    if job["parked"]:
        return _parked(job)
    if state is State.SCHEDULED and job["run_at"] > job["now"]:
        says = msg("explain.scheduled", run_at=job["run_at"])
        if job["attempts"]:
            says = msg("explain.retry", run_at=job["run_at"], count=job["attempts"])
        return Explanation(
            Reason.SCHEDULED,
            says,
            {"run_at": job["run_at"], "attempts": job["attempts"], "max_attempts": job["max_attempts"]},
        )
    return _waiting(job)


def _ended(job: Mapping[str, Any], state: State) -> Explanation:
    at, code = job["finished_at"], job["error_code"]
    says = Message(f"explain.ended.{state.value}", {"finished_at": at})
    if code and state is not State.SUCCEEDED:
        says = Message(f"explain.ended_because.{state.value}", {"finished_at": at, "code": code, "error": _error(job)})
    return Explanation(Reason.ENDED, says, {"state": state.value, "finished_at": at, "error_code": code})


def _error(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job's error as the parameter of a message."""
    detail = json.loads(job["error_detail"] or "{}")
    return {
        "code": job["error_code"],
        "message": job["error_message"],
        "key": detail.get("key"),
        "params": detail.get("params") or {},
    }


def _running(job: Mapping[str, Any]) -> Explanation:
    worker, until = job["worker"], job["lease_expires_at"]
    facts = {"worker": worker, "lease_expires_at": until, "started_at": job["started_at"]}
    if job["stopping"]:
        return Explanation(Reason.STOPPING, msg("explain.stopping", worker=worker), facts)
    if until <= job["now"]:
        return Explanation(Reason.RUNNING, msg("explain.overdue", worker=worker, lease_expires_at=until), facts)
    return Explanation(Reason.RUNNING, msg("explain.running", worker=worker, lease_expires_at=until), facts)


def _waiting(job: Mapping[str, Any]) -> Explanation:
    queue, ahead = job["queue"], job["ahead"]
    if job["paused_at"] is not None:
        return _paused(job)
    if job["workers"] == 0:
        says = msg("explain.no_worker", kind=job["kind"], queue=queue)
        return Explanation(Reason.NO_WORKER, says, {"kind": job["kind"], "queue": queue})
    if job["breaker"] is not None:
        return _blocked(job)
    if job["cap_most"] is not None:
        return _capped(job)
    if job["rate_most"] is not None:
        return _paced(job)
    if job["isolate"]:
        return Explanation(Reason.ISOLATED, msg("explain.isolated"), {"queue": queue})
    if ahead:
        many = ahead > _MOST_COUNTED
        says = msg("explain.far_behind", number=_MOST_COUNTED) if many else msg("explain.behind", count=ahead)
        return Explanation(Reason.BEHIND_OTHERS, says, {"ahead": min(ahead, _MOST_COUNTED), "or_more": many})
    if job["turns"]:
        return Explanation(Reason.NEXT, msg("explain.takes_turns"), {"queue": queue, "takes_turns": True})
    return Explanation(Reason.NEXT, msg("explain.next"), {"queue": queue, "takes_turns": False})


def _paused(job: Mapping[str, Any]) -> Explanation:
    queue, at, why = job["queue"], job["paused_at"], job["paused_reason"]
    says = msg("explain.queue_paused", queue=queue, paused_at=at)
    if why:
        says = msg("explain.queue_paused_because", queue=queue, paused_at=at, why=why)
    return Explanation(Reason.QUEUE_PAUSED, says, {"queue": queue, "paused_at": at, "paused_reason": why})


def _parked(job: Mapping[str, Any]) -> Explanation:
    sequence, earlier, at_once = job["sequence_key"], job["earlier"], job["sequence_at_once"]
    many = earlier > _MOST_COUNTED
    says = msg("explain.sequence.next", sequence=sequence)
    if many:
        says = msg("explain.sequence.far_behind", number=_MOST_COUNTED, sequence=sequence, at_once=at_once)
    elif earlier:
        says = msg("explain.sequence.behind", count=earlier, sequence=sequence, at_once=at_once)
    facts = {"sequence": sequence, "at_once": at_once, "earlier": min(earlier, _MOST_COUNTED), "or_more": many}
    return Explanation(Reason.SEQUENCE, says, facts)


def _capped(job: Mapping[str, Any]) -> Explanation:
    tenant, kind, most, running = job["cap_tenant"], job["cap_kind"], job["cap_most"], job["cap_running"]
    if tenant is None:
        says = msg("explain.cap.kind", count=most, kind=kind, running=running)
    elif kind is None:
        says = msg("explain.cap.tenant", count=most, tenant=tenant, running=running)
    else:
        says = msg("explain.cap.both", count=most, kind=kind, tenant=tenant, running=running)
    return Explanation(Reason.CAP, says, {"tenant": tenant, "kind": kind, "most": most, "running": running})


def _paced(job: Mapping[str, Any]) -> Explanation:
    tenant, kind, most, opens_at = job["rate_tenant"], job["rate_kind"], job["rate_most"], job["rate_opens_at"]
    seconds = int(job["rate_seconds"]) if job["rate_seconds"].is_integer() else job["rate_seconds"]
    if tenant is None:
        says = msg("explain.rate.kind", count=most, seconds=seconds, kind=kind, opens_at=opens_at)
    elif kind is None:
        says = msg("explain.rate.tenant", count=most, seconds=seconds, tenant=tenant, opens_at=opens_at)
    else:
        says = msg("explain.rate.both", count=most, seconds=seconds, kind=kind, tenant=tenant, opens_at=opens_at)
    return Explanation(
        Reason.RATE,
        says,
        {"tenant": tenant, "kind": kind, "most": most, "seconds": seconds, "opens_at": opens_at},
    )


def _blocked(job: Mapping[str, Any]) -> Explanation:
    dependency, until, why = job["dependency"], job["open_until"], job["breaker_reason"]
    if job["breaker"] == BreakerState.CLOSED:
        return _cooling(job)
    if job["breaker"] == BreakerState.HALF_OPEN:
        says = msg("explain.breaker.half_open", dependency=dependency)
    elif until is None:
        says = msg("explain.breaker.tripped", dependency=dependency)
        if why:
            says = msg("explain.breaker.tripped_because", dependency=dependency, why=why)
    else:
        says = msg("explain.breaker.open", dependency=dependency, open_until=until)
        if why:
            says = msg("explain.breaker.open_because", dependency=dependency, open_until=until, why=why)
    return Explanation(
        Reason.BREAKER,
        says,
        {"dependency": dependency, "breaker": job["breaker"], "open_until": until, "reason": why},
    )


def _cooling(job: Mapping[str, Any]) -> Explanation:
    dependency, until = job["dependency"], job["cooldown_until"]
    key = "explain.breaker.cooled" if until <= job["now"] else "explain.breaker.cooling"
    return Explanation(
        Reason.BREAKER,
        msg(key, dependency=dependency, cooldown_until=until),
        {"dependency": dependency, "breaker": job["breaker"], "cooldown_until": until},
    )
