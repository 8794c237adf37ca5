"""uvicorn with three additions: it shuts down slowly, it closes connections whose headers do not arrive in time, and it
answers a broken request with a problem document.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import h11
import structlog
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from waybill.errors import Code
from waybill.http import Problem
from waybill.readiness import notify_ready
from waybill_gateway.doorkeeper import Doorkeeper

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_HEADERS_WITHIN = 10.0
"""Seconds in which a client must have sent its headers."""


class GatewayServer(uvicorn.Server):
    """On SIGTERM it refuses new documents, finishes those that run, and only then stops listening.

    Until then it still answers probes, with "not ready".
    """

    def __init__(
        self, config: uvicorn.Config, doorkeeper: Doorkeeper, *, grace: float, is_ready: Callable[[], bool]
    ) -> None:
        super().__init__(config)
        self._doorkeeper = doorkeeper
        self._grace = grace
        self._is_ready = is_ready
        self._leave_at: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        log.info("listening", host=self.config.host, port=self.config.port)

    async def on_tick(self, counter: int) -> bool:
        if self._is_ready():
            notify_ready()
            self._is_ready = lambda: False  # report it only once
        if self._leave_at is not None and (not self._doorkeeper.inside or time.monotonic() > self._leave_at):
            self.should_exit = True
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._leave_at is not None:  # a second signal means: stop now
            super().handle_exit(sig, frame)
            return
        self._captured_signals.append(sig)
        self._doorkeeper.leaving = True
        self._leave_at = time.monotonic() + self._grace


class TimedProtocol(H11Protocol):
    """A connection whose client must send its headers in time."""

    _overdue: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is not h11.IDLE:  # the headers are complete
            self._stop_waiting()

    def on_response_complete(self) -> None:
        self._expect_request()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        body = json.dumps(Problem.members(400, Code.VALIDATION_ERROR, msg)).encode()
        headers = [
            (b"content-type", Problem.media_type.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        try:
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            pass  # a response was sent already, so we can only close the connection
        self.transport.close()

    def _expect_request(self) -> None:
        self._stop_waiting()
        self._overdue = self.loop.call_later(_HEADERS_WITHIN, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def configured(app: Any, *, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,  # `GatewayServer` has already waited for what runs
    )
