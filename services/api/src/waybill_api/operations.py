"""`/ops`: what an admin sees after signing in. Queues, dependencies, the jobs of all tenants, and the audit trail.

It only shows; `waybill` is the command that changes things. Each look at jobs is recorded in the audit trail.
"""

from __future__ import annotations

import json
import uuid
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from waybill import audit
from waybill.audit import queries as audit_queries
from waybill.audit.queries import EventFilter
from waybill.db import driver
from waybill.errors import Refused
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.web.languages import language_of
from waybill.web.layout import frame, page, render
from waybill.web.visitors import Admin, Shared
from waybill_engine import State, queries
from waybill_engine.breaker_control import list_breakers
from waybill_engine.explain import explain

router = APIRouter(include_in_schema=False)

_JOBS = 50
_EVENTS = 20
_COUNTED = (State.QUEUED, State.SCHEDULED, State.RUNNING, State.FAILED, State.DEAD_LETTER)


@router.get("/ops")
async def operations(
    request: Request,
    context: Shared,
    _admin: Admin,
    tenant: Annotated[str, Query(max_length=200)] = "",
    state: Annotated[State | Literal[""], Query()] = "",
    before: Annotated[uuid.UUID | None, Query()] = None,
) -> Response:
    if not is_storable(tenant):
        raise Refused(msg("request.filter"))
    wanted = tenant.strip() or None
    async with context.database.transaction() as session:
        connection = await driver(session)
        stats = await queries.queue_stats(session)
        breakers = await list_breakers(connection)
        states = [State(state)] if state else []
        jobs = await queries.list_jobs(session, tenant=wanted, states=states, before=before, limit=_JOBS + 1)
        events = (await audit_queries.page(connection, EventFilter(), limit=_EVENTS)).events
        now = await queries.database_time(session)
        shown = min(len(jobs), _JOBS)
        await audit.record(connection, "jobs.listed", "jobs", tenant=wanted, detail={"jobs": shown, "page": "/ops"})
    language = language_of(request)
    text = render(
        "ops.html",
        language,
        page=frame(request),
        queues=stats,
        counted=_COUNTED,
        breakers=breakers,
        jobs=jobs[:_JOBS],
        next=jobs[_JOBS - 1].id if len(jobs) > _JOBS else None,
        only_tenant=wanted or "",  # the frame of the page has a `tenant` of its own
        state=states[0] if states else None,
        states=list(State),
        events=events,
        now=now,
    )
    return page(text, language)


@router.get("/ops/jobs/{job_id}")
async def job_of_anybody(request: Request, job_id: uuid.UUID, context: Shared, _admin: Admin) -> Response:
    async with context.database.transaction() as session:
        connection = await driver(session)
        job = await queries.get_job(session, job_id)
        found = await explain(connection, job_id)
        happenings = await queries.history(session, job)
        await audit.record(connection, "job.looked_at", f"job:{job_id}", tenant=job.tenant, detail={"page": "/ops"})
    language = language_of(request)
    text = render(
        "ops_job.html",
        language,
        page=frame(request),
        job=job,
        why=language.say(found.says.key, **found.says.params),
        happenings=[(one, json.dumps(one.detail, default=str) if one.detail else "") for one in happenings],
    )
    return page(text, language)
