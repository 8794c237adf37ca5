"""`/api/jobs`: list jobs, look at one, and retry, cancel, pin or delete it."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Literal

import pydantic_core
from fastapi import APIRouter, Header, Query, Response

from waybill.errors import Refused
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.security import ADMIN
from waybill.web.entity_tags import is_known
from waybill.web.openapi import refusals
from waybill_convert.api.readable import ReadableOwner
from waybill_convert.permissions import Reader, Writer
from waybill_convert.schemas import (
    EventsSchema,
    ExplanationSchema,
    JobSchema,
    ListingSchema,
    foreign_job_json,
    job_json,
)
from waybill_convert.service import MOST_LISTED
from waybill_convert.status import Status
from waybill_convert.views import ConversionView
from waybill_convert.web_context import Shared
from waybill_engine.explain import Reason

router = APIRouter(prefix="/api/jobs", tags=["jobs"])


@router.get(
    "",
    response_model=ListingSchema,
    responses={304: {"description": "Nothing has changed since the answer with this ETag."}, **refusals()},
)
async def list_jobs(
    context: Shared,
    visitor: Reader,
    status: Annotated[list[Status] | None, Query(description="Only jobs with these states; may be repeated.")] = None,
    q: Annotated[
        str | None, Query(max_length=200, description="Part of the file name, or the beginning of the id.")
    ] = None,
    since: Annotated[
        str | None,
        Query(
            max_length=200,
            description="Only changes: the `since` of an earlier answer (nothing is missed, some may be repeated), or"
            " an ISO time (a minute early, to be safe).",
        ),
    ] = None,
    cursor: Annotated[
        str | None, Query(max_length=200, description="The next page: the `next` of an earlier answer.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """List your jobs, newest first, or the changes among them."""
    owner = visitor.principal.owner
    if since is not None:
        if status or q or cursor:
            raise Refused(msg("convert.list.since_alone"))
        answer = await context.listings.since(owner, since, limit=limit)
    else:
        if q is not None and not is_storable(q):
            raise Refused(msg("convert.list.search"))
        wanted = tuple(sorted(set(status or ())))
        answer = await context.listings.page(owner, statuses=wanted, words=q or None, cursor=cursor, limit=limit)
    headers = {"ETag": answer.etag, "Cache-Control": "private, no-cache", "Vary": "Cookie, Authorization"}
    if is_known(answer.etag, if_none_match):
        return Response(status_code=304, headers=headers)
    return Response(answer.body, headers=headers, media_type="application/json")


@router.get("/{job_id}", response_model=JobSchema, responses=refusals(404))
async def get_job(job_id: uuid.UUID, context: Shared, visitor: Reader, owner: ReadableOwner) -> Response:
    """One of your jobs. Admins see everybody's, and each look at a foreign one is recorded."""
    view = await context.conversions.get(owner, job_id)
    return _job(view) if owner == visitor.principal.owner else _json(foreign_job_json(view))


@router.get("/{job_id}/events", response_model=EventsSchema, responses=refusals(404))
async def events(job_id: uuid.UUID, context: Shared, owner: ReadableOwner) -> Response:
    """What happened to a job, in order."""
    happenings = await context.conversions.events(owner, job_id)
    told = [
        {"at": one.at, "event": one.event, "detail": {key: one.detail[key] for key in _TOLD if key in one.detail}}
        for one in happenings
    ]
    return _json({"events": told})


@router.get("/{job_id}/explain", response_model=ExplanationSchema, responses=refusals(404))
async def explain(job_id: uuid.UUID, context: Shared, visitor: Reader, owner: ReadableOwner) -> Response:
    """Why isn't it running? One short answer."""
    found = await context.conversions.explain(owner, job_id)
    facts, says = dict(found.facts), found.says
    # Only operators learn the names of our machines.
    if not visitor.principal.may(ADMIN) and found.reason in _OURS:
        facts.pop("worker", None)
        says = _OURS[found.reason]
    sentence = f"{found.lost} {says}" if found.lost else str(says)
    return _json(
        {"reason": found.reason.value, "sentence": sentence, "key": says.key, "params": says.params, "facts": facts}
    )


@router.post("/{job_id}/retry", response_model=JobSchema, responses=refusals(400, 404, 408, 409, 413, 415))
async def retry(
    job_id: uuid.UUID,
    context: Shared,
    visitor: Writer,
    mapping: Annotated[
        str | None,
        Query(
            max_length=200,
            description="Another mapping than before, or `auto`, which then chooses among the mappings of now.",
        ),
    ] = None,
    loss: Annotated[
        Literal["strict", "lenient"] | None,
        Query(description="Another choice than before of what may be lost of an e-invoice."),
    ] = None,
) -> Response:
    """Retry a failed or cancelled job; 404 `EXPIRED` if the document is no longer stored."""
    return _job(await context.conversions.retry(visitor.principal.owner, job_id, mapping, loss))


@router.post("/{job_id}/cancel", response_model=JobSchema, responses=refusals(404, 408, 409, 413))
async def cancel(job_id: uuid.UUID, context: Shared, visitor: Writer) -> Response:
    """Cancel a job that waits or runs."""
    return _job(await context.conversions.cancel(visitor.principal.owner, job_id))


@router.post("/{job_id}/pin", response_model=JobSchema, responses=refusals(404, 408, 409, 413))
async def pin(job_id: uuid.UUID, context: Shared, visitor: Writer) -> Response:
    """Keep a job, its document and its result, whatever their age; 409 if it has expired already."""
    return _job(await context.conversions.pin(visitor.principal.owner, job_id, pinned=True))


@router.delete("/{job_id}/pin", response_model=JobSchema, responses=refusals(404, 408, 409, 413))
async def unpin(job_id: uuid.UUID, context: Shared, visitor: Writer) -> Response:
    """Stop keeping a job, so that it is removed in due time."""
    return _job(await context.conversions.pin(visitor.principal.owner, job_id, pinned=False))


@router.delete("/{job_id}", status_code=204, responses=refusals(404, 408, 409, 413))
async def delete(job_id: uuid.UUID, context: Shared, visitor: Writer) -> None:
    """Delete a job, its document and its result. 409 while it runs (cancel it first) or is under legal hold."""
    await context.conversions.delete(visitor.principal.owner, job_id)


_TOLD = ("code", "message", "attempts", "retry_at", "queue", "priority")
"""The parts of an event's detail that the job's owner may see."""

_OURS = {
    Reason.RUNNING: msg("convert.being_converted"),
    Reason.STOPPING: msg("convert.being_stopped"),
}


def _job(view: ConversionView) -> Response:
    return _json(job_json(view))


def _json(content: dict[str, Any]) -> Response:
    return Response(pydantic_core.to_json(content), media_type="application/json")
