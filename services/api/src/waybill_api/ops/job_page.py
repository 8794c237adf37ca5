"""`/ops/jobs/{id}`: one job of any tenant, why it is where it is, and its life as a chart."""

from __future__ import annotations

import json
import uuid

from fastapi import APIRouter, Request
from starlette.responses import Response

from waybill import audit
from waybill.db import driver
from waybill.telemetry.trace_links import trace_url
from waybill.web.languages import Language, language_of
from waybill.web.layout import frame, page, render
from waybill.web.visitors import Admin, Shared
from waybill_api.ops import timeline
from waybill_api.ops.done_actions import DoneAction
from waybill_api.ops.durations import duration
from waybill_api.ops.looks import Looks, name_of
from waybill_engine import State, queries
from waybill_engine.control import RETRYABLE
from waybill_engine.explain import explain

router = APIRouter()

_MOST_EVENTS = 200
"""The page asks again every few seconds, and draws a bar for each run."""

_looks = Looks()


@router.get("/ops/jobs/{job_id}")
async def job_of_anybody(request: Request, job_id: uuid.UUID, context: Shared, admin: Admin) -> Response:
    live = "hx-request" in request.headers
    async with context.database.transaction() as session:
        connection = await driver(session)
        job = await queries.get_job(session, job_id)
        found = await explain(connection, job_id)
        happenings, runs_before = await queries.newest_history(session, job, _MOST_EVENTS)
        children = await queries.count_children(session, job_id) if job.children else {}
        now = await queries.database_time(session)
        if not live or _looks.is_new(f"{name_of(admin)} {job_id}"):
            await audit.record(connection, "job.looked_at", f"job:{job_id}", tenant=job.tenant, detail={"page": "/ops"})
    language = language_of(request)
    state = State(job.state)
    values = {
        "job": job,
        "state": state,
        "now": now,
        "children": children,
        "trace_url": trace_url(job_id, job.traceparent, context.settings),
        "why": " ".join(language.say(one.key, **one.params) for one in (found.lost, found.says) if one),
        "spans": timeline.rows(timeline.spans(happenings, state, now, runs_before or 0)),
        "most_events": _MOST_EVENTS if runs_before is not None else None,
        "happenings": [
            (one, json.dumps(one.detail, default=str, ensure_ascii=False) if one.detail else "") for one in happenings
        ],
        "may_retry": state in RETRYABLE,
        "may_cancel": not state.final,
        "took": lambda seconds: duration(seconds, language),
        "happened": lambda event: _in_words(event, language),
    }
    if live:
        response = page(render("ops/job_live.html", language, **values), language)
    else:
        outcome = DoneAction.read(request.query_params)
        response = page(render("ops/job.html", language, page=frame(request), outcome=outcome, **values), language)
    response.headers.add_vary_header("HX-Request")
    return response


def _in_words(event: str, language: Language) -> str:
    """An event of a job's history. A pipeline's own are shown as they are stored."""
    key = f"ops.events_of_jobs.{event}"
    return language.say(key) if key in language.messages else event
