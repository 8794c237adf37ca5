"""Why isn't it running? One short, true answer for any job, from one look at the database.

The rules are those of the claim (`rules`, `caps`). Reasons are tried in the order in which they would have to be
removed: nobody needs to know how many jobs are ahead in a queue that is paused. An answer is a message, so that a page
can say it in the reader's language; its words are in the table `explain` of the platform's catalogues.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from waybill.errors import NotFound
from waybill.messages import Message, languages, msg
from waybill.pg_text import as_object
from waybill_engine.breaker_models import BreakerState
from waybill_engine.models import State
from waybill_engine.waiting_facts import MOST_COUNTED, look

if TYPE_CHECKING:
    from waybill.db.database import Connection


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
    lost: Message | None = None
    """Of a job that waits again: what became of the worker that ran it last, if the cluster told us."""

    @property
    def sentence(self) -> str:
        """The answer in English."""
        return f"{self.lost} {self.says}" if self.lost else str(self.says)

    @property
    def key(self) -> str:
        """The message's key: one reason can be said in several ways."""
        return self.says.key

    @property
    def params(self) -> Mapping[str, Any]:
        """The message's parameters. Times are times, not text."""
        return self.says.params


async def explain(connection: Connection, job_id: uuid.UUID) -> Explanation:
    job = await look(connection, job_id)
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    answer = _explained(job)
    lost = as_object(json.loads(job.get("lost") or "{}"))
    said = Message(str(lost.get("key")), as_object(lost.get("params")))
    if languages()["en"].tell(said) is None:  # somebody wrote it by hand
        return answer
    return replace(answer, lost=said, facts={**answer.facts, "lost": lost.get("cause")})


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
    detail = as_object(json.loads(job["error_detail"] or "{}"))
    key = detail.get("key")
    return {
        "code": job["error_code"],
        "message": job["error_message"],
        "key": key if isinstance(key, str) else None,
        "params": as_object(detail.get("params")),
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
        many = ahead > MOST_COUNTED
        says = msg("explain.far_behind", number=MOST_COUNTED) if many else msg("explain.behind", count=ahead)
        return Explanation(Reason.BEHIND_OTHERS, says, {"ahead": min(ahead, MOST_COUNTED), "or_more": many})
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
    many = earlier > MOST_COUNTED
    says = msg("explain.sequence.next", sequence=sequence)
    if many:
        says = msg("explain.sequence.far_behind", number=MOST_COUNTED, sequence=sequence, at_once=at_once)
    elif earlier:
        says = msg("explain.sequence.behind", count=earlier, sequence=sequence, at_once=at_once)
    facts = {"sequence": sequence, "at_once": at_once, "earlier": min(earlier, MOST_COUNTED), "or_more": many}
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
