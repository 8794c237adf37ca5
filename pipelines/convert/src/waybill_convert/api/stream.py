"""`GET /api/stream`: server-sent events about the caller's jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from waybill.web.live_streams import Streams
from waybill.web.openapi import refusals
from waybill.web.visitors import Reader, Shared
from waybill_convert.cursors import parse_since

router = APIRouter(prefix="/api", tags=["stream"])

_COME_BACK = 3000
"""Milliseconds after which a browser whose stream ended comes back."""


class EventStream(StreamingResponse):
    """Takes its place among the owner's streams for as long as it is open, and only then."""

    def __init__(self, streams: Streams, owner: str, body: AsyncIterator[str | bytes]) -> None:
        headers = {"Cache-Control": "no-cache, no-store", "X-Accel-Buffering": "no"}
        super().__init__(body, headers=headers, media_type="text/event-stream")
        self._streams, self._owner = streams, owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.enter(self._owner):
            await super().__call__(scope, receive, send)


def event(name: str, data: bytes, cursor: str) -> bytes:
    """One event. `data` is a single line: JSON, or HTML without line ends."""
    return b"event: %s\nid: %s\ndata: %s\n\n" % (name.encode(), cursor.encode(), data)


@router.get(
    "/stream",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Events called `change`. Their data is what `GET /api/jobs?since=…` answers; their id is"
            " the cursor to go on with. The first comes at once.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **refusals(429),
    },
)
async def stream(
    context: Shared,
    visitor: Reader,
    since: Annotated[
        str | None, Query(max_length=200, description="Where to begin: the `since` of a list you have.")
    ] = None,
    last_event_id: Annotated[
        str | None, Header(max_length=200, description="Where to go on: sent by browsers that come back.")
    ] = None,
) -> Response:
    """Follow your jobs as they change."""
    owner, begin = visitor.principal.owner, last_event_id or since
    if begin is not None:
        parse_since(begin)  # refused now, while there can still be an answer

    async def events() -> AsyncIterator[bytes]:
        yield b"retry: %d\n\n" % _COME_BACK
        async for answer in context.streams.follow(visitor.principal, visitor.session, begin):
            if answer is None:
                yield b": still here\n\n"
            else:
                yield event("change", answer.body, answer.listing.next or answer.listing.since)

    return EventStream(context.streams, owner, events())
