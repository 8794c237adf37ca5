"""What an admin does on `/ops`: pause and resume queues, trip and reset breakers, retry and cancel jobs.

Each is a form that is posted and leads back to the page, which says what happened. The engine's functions leave the
events of the audit trail. Many jobs are retried in short steps, for a few seconds; whoever wants more presses again.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from waybill.db import Database
from waybill.errors import Conflict, NotFound, Refused
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.web.languages import language_of
from waybill.web.layout import frame, page, render
from waybill.web.visitors import Admin, Shared
from waybill_api.ops.done_actions import DoneAction
from waybill_engine import State, breaker_control, bulk, control, overview
from waybill_engine.job_filter import JobFilter

router = APIRouter()

UNASKED = 10
"""So many jobs are retried without asking whether that is meant."""
_SECONDS = 5.0
"""How long one request goes on retrying."""
_MOST_CHOSEN = 500
_MOST_FIELDS = 64 * 1024
"""More than fit into a body: whoever chose too many jobs is told so, and not that the request is malformed."""
_TRIPPED_MINUTES = (0, 5, 30, 60)
"""For how long a breaker can be tripped; 0 is until somebody resets it."""

Reason = Annotated[str, Form(max_length=200)]


@router.post("/ops/queues/{name}/pause")
async def pause(name: str, context: Shared, _admin: Admin, reason: Reason = "") -> Response:
    async with context.database.hot() as connection:
        if name not in {queue.name for queue in await overview.known_queues(connection)}:
            raise NotFound(msg("request.no_such_queue"))
        await control.pause(connection, name, _given(reason))
    return _back(DoneAction("paused", name), "ops-queues")


@router.post("/ops/queues/{name}/resume")
async def resume(name: str, context: Shared, _admin: Admin) -> Response:
    async with context.database.hot() as connection:
        resumed = await control.resume(connection, name)
    return _back(DoneAction("resumed" if resumed else "was_open", name), "ops-queues")


@router.post("/ops/breakers/{name}/trip")
async def trip(
    name: str, context: Shared, _admin: Admin, reason: Reason = "", minutes: Annotated[int, Form()] = 0
) -> Response:
    if minutes not in _TRIPPED_MINUTES:
        raise Refused(msg("request.no_such_choice"))
    async with context.database.hot() as connection:
        if not await breaker_control.list_breakers(connection, name):
            raise NotFound(msg("request.no_such_dependency"))
        why = _given(reason) or "Tripped by an operator"
        await breaker_control.trip(connection, name, why, minutes * 60.0 if minutes else None)
    return _back(DoneAction("tripped", name), "ops-breakers")


@router.post("/ops/breakers/{name}/reset")
async def reset(name: str, context: Shared, _admin: Admin) -> Response:
    async with context.database.hot() as connection:
        done = await breaker_control.reset(connection, name)
    return _back(DoneAction("reset" if done else "was_closed", name), "ops-breakers")


@router.post("/ops/jobs/{job_id}/retry")
async def retry_one(job_id: uuid.UUID, context: Shared, _admin: Admin) -> Response:
    async with context.database.hot() as connection:
        await control.retry(connection, job_id)
    return RedirectResponse(DoneAction("retried", jobs=1).address(f"/ops/jobs/{job_id}"), 303)


@router.post("/ops/jobs/{job_id}/cancel")
async def cancel_one(job_id: uuid.UUID, context: Shared, _admin: Admin) -> Response:
    async with context.database.hot() as connection:
        result = await control.cancel(connection, job_id)
    did = "cancelled" if result.state is State.CANCELLED else "stopping"
    return RedirectResponse(DoneAction(did, jobs=1 + result.below).address(f"/ops/jobs/{job_id}"), 303)


@dataclass(frozen=True, slots=True)
class Group:
    """Dead letters of one kind with one error, as a form names them."""

    kind: str
    code: str

    @classmethod
    def read(cls, text: str) -> Group:
        kind, _, code = text.partition("|")
        if not kind or not code or not is_storable(text):
            raise Refused(msg("request.no_such_choice"))
        return cls(kind, code)


@router.post("/ops/retry")
async def retry_chosen(request: Request, context: Shared, _admin: Admin) -> Response:
    """Retry dead letters by kind and error, or jobs one by one. Many only once it was confirmed."""
    form = await request.form(max_files=0, max_fields=_MOST_FIELDS)
    groups = sorted({Group.read(str(each)) for each in form.getlist("group")}, key=lambda one: (one.kind, one.code))
    jobs = sorted({_id(str(each)) for each in form.getlist("job")})
    if len(jobs) + len(groups) > _MOST_CHOSEN:
        raise Refused(msg("request.too_many_chosen"))
    if not groups and not jobs:
        return _back(DoneAction("nothing"), "ops-dead")
    if form.get("sure") != "yes":
        async with context.database.hot() as connection:
            letters = await overview.dead_letters(connection)
        counts = {Group(one.kind, one.error_code or ""): one.jobs for one in letters.groups}
        known = len(jobs) + sum(counts.get(group, 0) for group in groups)
        if known > UNASKED or letters.more:
            language = language_of(request)
            chosen = {"groups": [(group, counts.get(group, 0)) for group in groups], "jobs": jobs}
            text = render(
                "ops/confirm.html", language, page=frame(request), count=known, more=letters.more and groups, **chosen
            )
            return page(text, language)
    return _back(await _retry(context.database, groups, jobs), "ops-dead")


async def _retry(database: Database, groups: list[Group], jobs: list[uuid.UUID]) -> DoneAction:
    until = time.monotonic() + _SECONDS
    done = left = 0
    for job_id in jobs:
        try:
            async with database.hot() as connection:
                await control.retry(connection, job_id)
            done += 1
        except (Conflict, NotFound):  # it runs already, or somebody has deleted it
            left += 1
    for group in groups:
        wanted = JobFilter([State.DEAD_LETTER], group.kind, error_code=group.code)
        async for step in bulk.retry(database.hot, wanted):
            done += len(step.done)
            left += len(step.left)
            if time.monotonic() > until:
                return DoneAction("retried", jobs=done, left=left, more=True)
    return DoneAction("retried", jobs=done, left=left)


def _back(outcome: DoneAction, place: str) -> Response:
    return RedirectResponse(f"{outcome.address()}#{place}", 303)


def _given(reason: str) -> str | None:
    if not is_storable(reason):
        raise Refused(msg("request.no_such_choice"))
    return " ".join(reason.split()) or None


def _id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise Refused(msg("request.no_such_choice")) from None
