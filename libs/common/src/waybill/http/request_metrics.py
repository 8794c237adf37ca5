"""Counts requests and measures how long their answers took to begin, by route.

A route is the path as it was declared. Whatever no route has taken is `unmatched`, and a method that HTTP does not have
is `other`: visitors must not be able to make new series.
"""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waybill.http.request_place import route_of
from waybill.telemetry.metrics import HTTP_REQUEST, HTTP_REQUESTS

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestMetrics:
    """Add it outermost, so that it sees every answer. A stream counts when it begins."""

    def __init__(self, app: ASGIApp, service: str) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in _METHODS else "other"
        began, begun = time.perf_counter(), False

        async def watched(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and not begun:
                begun = True
                self._count(scope, method, message["status"], time.perf_counter() - began)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            if not begun:  # the framework answers with a 500 outside of us
                self._count(scope, method, 500, time.perf_counter() - began)
            raise

    def _count(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        route = route_of(scope) or "unmatched"
        HTTP_REQUESTS.labels(self._service, method, route, str(status)).value += 1
        HTTP_REQUEST.labels(self._service, method, route).observe(seconds)
