"""`/api/batches`: list batches, look at one, retry, cancel and delete it."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import pydantic_core
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from waybill.messages import msg
from waybill.security import ADMIN
from waybill.web.addresses import address_of
from waybill.web.methods import is_head
from waybill.web.openapi import refusals
from waybill_batches.batch_feed import parse_stream_cursor
from waybill_batches.permissions import Reader, Writer
from waybill_batches.schemas import BatchesSchema, BatchExplanationSchema, BatchSchema, batch_json, listing_json
from waybill_batches.service import MOST_LISTED
from waybill_batches.status import BatchStatus
from waybill_batches.views import BatchView
from waybill_batches.web_context import Shared
from waybill_engine.explain import Reason

router = APIRouter(prefix="/api/batches", tags=["batches"])


@router.get("", response_model=BatchesSchema, responses=refusals())
async def list_batches(
    context: Shared,
    visitor: Reader,
    status: Annotated[
        list[BatchStatus] | None, Query(description="Only batches with these states; may be repeated.")
    ] = None,
    cursor: Annotated[
        str | None, Query(max_length=200, description="The next page: the `next` of an earlier answer.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
) -> Response:
    """List your batches, newest first."""
    listing = await context.batches.page(visitor.principal.owner, statuses=status or (), cursor=cursor, limit=limit)
    return _json(listing_json(listing))


# This route comes before those with an id: "stream" is not an id.
@router.get(
    "/stream",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": 'Events called `change`. Their data is `{"batches": [...]}`: those that changed, and those'
            " that are being worked. The first comes at once.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **refusals(429),
    },
)
async def stream(
    request: Request,
    context: Shared,
    visitor: Reader,
    last_event_id: Annotated[
        str | None, Header(max_length=200, description="Where to continue: sent by browsers that reconnect.")
    ] = None,
) -> Response:
    """Follow your batches as they change."""
    if last_event_id is not None:
        parse_stream_cursor(last_event_id)  # refuse it now, before the response begins
    return context.streams.response(
        context.feed,
        visitor.principal,
        visitor.session,
        last_event_id,
        address=address_of(request),
        head=is_head(request),
    )


@router.get("/{batch_id}", response_model=BatchSchema, responses=refusals(404))
async def get_batch(batch_id: uuid.UUID, context: Shared, visitor: Reader) -> Response:
    """One of your batches, with its summary once it has ended."""
    owner = visitor.principal.owner
    view = await context.batches.get(owner, batch_id)
    return _batch(view, await context.batches.summary(owner, batch_id))


@router.get("/{batch_id}/explain", response_model=BatchExplanationSchema, responses=refusals(404))
async def explain(batch_id: uuid.UUID, context: Shared, visitor: Reader) -> Response:
    """Why isn't it done? One short answer."""
    found = await context.batches.explain(visitor.principal.owner, batch_id)
    facts, says = dict(found.facts), found.says
    # Only operators learn the names of our machines.
    if found.reason in (Reason.RUNNING, Reason.STOPPING) and not visitor.principal.may(ADMIN):
        facts.pop("worker", None)
        says = msg("batches.being_worked")
    return _json(
        {"reason": found.reason, "sentence": str(says), "key": says.key, "params": says.params, "facts": facts}
    )


@router.post("/{batch_id}/retry", response_model=BatchSchema, responses=refusals(404, 409))
async def retry(batch_id: uuid.UUID, context: Shared, visitor: Writer) -> Response:
    """Work the files that failed or were cancelled once more; 404 `EXPIRED` if they are no longer stored."""
    return _batch(await context.batches.retry(visitor.principal.owner, batch_id))


@router.post("/{batch_id}/cancel", response_model=BatchSchema, responses=refusals(404, 409))
async def cancel(batch_id: uuid.UUID, context: Shared, visitor: Writer) -> Response:
    """Stop working a batch. What is done stays done."""
    return _batch(await context.batches.cancel(visitor.principal.owner, batch_id))


@router.delete("/{batch_id}", status_code=204, responses=refusals(404, 409))
async def delete(batch_id: uuid.UUID, context: Shared, visitor: Writer) -> None:
    """Delete a batch, its files and its results. 409 while it is active (cancel it first) or under legal hold."""
    await context.batches.delete(visitor.principal.owner, batch_id)


def _batch(view: BatchView, summary: dict[str, Any] | None = None) -> Response:
    return _json(batch_json(view, summary))


def _json(content: dict[str, Any]) -> Response:
    return Response(pydantic_core.to_json(content), media_type="application/json")
