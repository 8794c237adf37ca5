"""Measures what becomes of documents: how long each took, how it ended, and where the time went.

It looks at answers from outside, as a client does: the status says how it ended, and `X-Stage` where the time went.
"""

from __future__ import annotations

import re
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waybill.telemetry.metrics import GATEWAY_REQUEST, GATEWAY_STAGE

_STAGE = re.compile(r"([a-z_]{1,40});dur=([0-9]{1,20}\.[0-9])", re.ASCII)
"""One stage in `X-Stage`. The names are on a list (`pool.stage_times`), so no document can make a new series."""


class MeasuredRoute:
    """A route for documents, measured."""

    def __init__(self, route: str, app: ASGIApp) -> None:
        self._route = route
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, outcome = time.perf_counter(), "gone"

        async def watched(message: Message) -> None:
            nonlocal outcome
            if message["type"] == "http.response.start":
                outcome = _outcome(message["status"])
                _note_stages(Headers(raw=message["headers"]).get("x-stage", ""))
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            outcome = "failed"
            raise
        finally:
            GATEWAY_REQUEST.labels(self._route, outcome).observe(time.perf_counter() - began)


def _note_stages(header: str) -> None:
    for stage, milliseconds in _STAGE.findall(header):
        GATEWAY_STAGE.labels(stage).observe(float(milliseconds) / 1000)


def _outcome(status: int) -> str:
    if status < 400:
        return "done"
    if status == 503:
        return "refused"
    return "rejected" if status < 500 else "failed"
