"""`GET /api/stream`: server-sent events about the caller's jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from waybill.web.addresses import address_of
from waybill.web.methods import is_head
from waybill.web.openapi import refusals
from waybill_convert.cursors import parse_since
from waybill_convert.permissions import Reader
from waybill_convert.web_context import Shared

router = APIRouter(prefix="/api", tags=["stream"])


@router.get(
    "/stream",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Events called `change`. Their data is what `GET /api/jobs?since=…` answers; their id is"
            " the cursor to continue with. The first comes at once.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **refusals(429),
    },
)
async def stream(
    request: Request,
    context: Shared,
    visitor: Reader,
    since: Annotated[
        str | None, Query(max_length=200, description="Where to begin: the `since` of an earlier list.")
    ] = None,
    last_event_id: Annotated[
        str | None, Header(max_length=200, description="Where to continue: sent by browsers that reconnect.")
    ] = None,
) -> Response:
    """Follow your jobs as they change."""
    begin = last_event_id or since
    if begin is not None:
        parse_since(begin)  # refuse it now, before the response begins
    return context.streams.response(
        context.listings, visitor.principal, visitor.session, begin, address=address_of(request), head=is_head(request)
    )
