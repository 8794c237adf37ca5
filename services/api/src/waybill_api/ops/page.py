"""`/ops`: what an admin sees after signing in. A script asks for the part that changes; without it, people reload."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from waybill import audit
from waybill.audit import queries as audit_queries
from waybill.audit.queries import EventFilter
from waybill.db import driver
from waybill.errors import NotFound, Refused
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.web.context import Context
from waybill.web.languages import Language, language_of
from waybill.web.layout import frame, page, render
from waybill.web.visitors import Admin, Shared, Visitor
from waybill_api.ops import facts as system
from waybill_api.ops.done_actions import DoneAction
from waybill_api.ops.durations import duration
from waybill_api.ops.health import LATE, findings
from waybill_api.ops.last_hour import Done, done_by_kind, hour
from waybill_api.ops.looks import Looks, name_of
from waybill_engine import State, queries
from waybill_engine.control import RETRYABLE
from waybill_engine.overview import SlowJob
from waybill_engine.samples import KindSample

router = APIRouter()

_JOBS = 25
_EVENTS = 20
_SLOWEST = 10
_JOBS_OF_A_WORKER = 5
_KINDS = 50
_KINDS_OF_A_QUEUE = 10
_FINDINGS = 12

_looks = Looks()


@router.get("/ops")
async def operations(
    request: Request,
    context: Shared,
    admin: Admin,
    tenant: Annotated[str, Query(max_length=200)] = "",
    kind: Annotated[str, Query(max_length=63)] = "",
    state: Annotated[State | Literal[""], Query()] = "",
    before: Annotated[uuid.UUID | None, Query()] = None,
) -> Response:
    if not is_storable(tenant) or not is_storable(kind):
        raise Refused(msg("request.filter"))
    language = language_of(request)
    shown = await _system(context, language)
    if "hx-request" in request.headers:
        await _record_watching(context, admin)
        response = page(render("ops/live.html", language, **shown), language)
    else:
        listed = await _listed(context, tenant.strip(), kind.strip(), State(state) if state else None, before)
        outcome = DoneAction.read(request.query_params)
        text = render("ops/page.html", language, page=frame(request), outcome=outcome, **shown, **listed)
        response = page(text, language)
    response.headers.add_vary_header("HX-Request")
    return response


@router.get("/ops/jobs")
async def find(context: Shared, _admin: Admin, id: Annotated[str, Query(max_length=36)] = "") -> Response:  # noqa: A002
    """Go to a job by its id, or by a beginning of it that no other job shares."""
    digits = id.strip().replace("-", "").lower()
    if not 8 <= len(digits) <= 32 or any(digit not in "0123456789abcdef" for digit in digits):
        raise NotFound(msg("request.no_such_job"))
    first, last = (uuid.UUID(digits.ljust(32, filler)) for filler in "0f")
    async with context.database.transaction() as session:
        found = await queries.ids_between(session, first, last, limit=2)
    if len(found) != 1:
        raise NotFound(msg("request.several_jobs") if found else msg("request.no_such_job"))
    return RedirectResponse(f"/ops/jobs/{found[0]}", 303)


async def _system(context: Context, language: Language) -> dict[str, Any]:
    """What the part of the page shows that changes by itself."""
    async with context.database.hot() as connection:
        facts = await system.read(connection)
    names = {worker.id: worker.name for worker in facts.workers}
    jobs_of: dict[uuid.UUID | None, list[SlowJob]] = defaultdict(list)
    for job in facts.running:
        jobs_of[job.worker_id].append(job)
    kinds = facts.sample.kinds if facts.sample is not None else ()
    done = done_by_kind(facts)
    return {
        "facts": facts,
        "now": facts.now,
        "findings": findings(facts, context.settings.sample_interval),
        "totals": {
            name: sum(getattr(one, name) for one in kinds) for name in ("queued", "running", "scheduled", "dead_letter")
        },
        "kinds": _busiest(kinds, done),
        "plots": hour(facts, language),
        "done": done,
        "most_findings": _FINDINGS,
        "most_of_queue": _KINDS_OF_A_QUEUE,
        "names": names,
        "jobs_of": jobs_of,
        "most_jobs": _JOBS_OF_A_WORKER,
        "slowest": facts.running[:_SLOWEST],
        "late": LATE,
        "lasted": lambda since: duration((facts.now - since).total_seconds(), language),
        "took": lambda seconds: duration(seconds, language),
    }


def _busiest(kinds: Sequence[KindSample], done: Mapping[str, Done]) -> list[KindSample]:
    """As many kinds as a page can show, in the order of their names: those with trouble, then the busiest."""

    def weight(one: KindSample) -> tuple[bool, int, str]:
        ended = done.get(one.kind, Done())
        failing = bool(one.dead_letter or ended.failed)
        return not failing, -(one.queued + one.running + one.scheduled + one.dead_letter + ended.jobs), one.kind

    return sorted(sorted(kinds, key=weight)[:_KINDS], key=lambda one: one.kind)


async def _listed(
    context: Context, tenant: str, kind: str, state: State | None, before: uuid.UUID | None
) -> dict[str, Any]:
    """The jobs that were asked for, and the end of the audit trail. Looking at jobs is recorded."""
    async with context.database.transaction() as session:
        connection = await driver(session)
        jobs = await queries.list_jobs(
            session,
            tenant=tenant or None,
            kind=kind or None,
            states=[state] if state else [],
            before=before,
            limit=_JOBS + 1,
        )
        events = (await audit_queries.page(connection, EventFilter(), limit=_EVENTS)).events
        detail = {"jobs": min(len(jobs), _JOBS), "page": "/ops"}
        await audit.record(connection, "jobs.listed", "jobs", tenant=tenant or None, detail=detail)
    return {
        "jobs": jobs[:_JOBS],
        "next": jobs[_JOBS - 1].id if len(jobs) > _JOBS else None,
        "only_tenant": tenant,  # the frame of the page has a `tenant` of its own
        "only_kind": kind,
        "state": state,
        "states": list(State),
        "retryable": RETRYABLE,
        "events": events,
    }


async def _record_watching(context: Context, admin: Visitor) -> None:
    if _looks.is_new(name_of(admin)):
        async with context.database.hot() as connection:
            await audit.record(connection, "jobs.listed", "jobs", detail={"page": "/ops", "live": True})
