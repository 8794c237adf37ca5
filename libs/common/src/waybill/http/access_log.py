"""One log line for each request: method, route, status, seconds, the request's id, and the job that it is about.

A line has the route as it was declared, never the path or the query string, which visitors write. Every line that is
written while a request is handled has the request's id, too, and the answer carries it as `X-Request-Id`.

Whoever may not ask decides how often they ask, so refusals (401, 403, 429) have a limited number of lines. The metrics
count them all.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, clear_contextvars

from waybill.http.request_place import job_of, route_of
from waybill.ids import new_id
from waybill.log.allowance import LineAllowance

log: structlog.stdlib.BoundLogger = structlog.get_logger()

HEADER = "X-Request-Id"
_ID = "waybill.request_id"
_REFUSALS = frozenset({401, 403, 429})
REFUSALS_PER_SECOND = 20
"""Lines of a process about refusals. The next line after some were left out says how many."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class AccessLog:
    """Add it outermost, so that it sees every answer. Requests to `quiet` routes are lines for debugging only."""

    def __init__(self, app: ASGIApp, *, written: bool = True, quiet: Collection[str] = ()) -> None:
        self._app = app
        self._written = written
        self._quiet = frozenset(quiet)
        self._refusals = LineAllowance(REFUSALS_PER_SECOND)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        clear_contextvars()  # left by an earlier request on this connection
        request_id = scope[_ID] = new_id()
        bind_contextvars(request_id=str(request_id))
        began, status = time.monotonic(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = str(request_id)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            if self._written:
                self._write(scope, status, time.monotonic() - began)

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        unsaid = self._refusals.take() if status in _REFUSALS else 0
        if unsaid is None:
            return
        route = route_of(scope)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        fields = {"method": method, "route": route, "status": status or None, "seconds": round(seconds, 4)}
        if job_id := job_of(scope):
            fields["job_id"] = job_id
        if unsaid:
            fields["not_logged"] = unsaid
        (log.debug if route in self._quiet else log.info)("request", **fields)


def request_id_of(scope: Scope) -> uuid.UUID:
    """The id of a request."""
    found: uuid.UUID | None = scope.get(_ID)
    return found or new_id()
