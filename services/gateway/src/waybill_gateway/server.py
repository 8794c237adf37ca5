"""uvicorn with additions: it shuts down slowly, and connections are our own (`waybill.http.timed_protocol`)."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import structlog
import uvicorn

from waybill.http.accept_errors import AcceptErrors
from waybill.http.timed_protocol import TimedProtocol
from waybill.readiness import notify_ready
from waybill_gateway.doorkeeper import Doorkeeper

log: structlog.stdlib.BoundLogger = structlog.get_logger()


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
        AcceptErrors().install(asyncio.get_running_loop())
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
