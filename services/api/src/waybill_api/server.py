"""uvicorn with additions: live streams end as soon as we are asked to stop, and connections are our own
(`waybill.http.timed_protocol`).
"""

from __future__ import annotations

import asyncio
import socket

import structlog
import uvicorn
from fastapi import FastAPI

from waybill.http.accept_errors import AcceptErrors
from waybill.http.headers import SAFE_HEADERS
from waybill.http.timed_protocol import TimedProtocol
from waybill.readiness import notify_ready
from waybill.web.context import Context
from waybill.web.page_headers import PAGE_HEADERS

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_REQUESTS_MAY_TAKE = 20
"""Seconds that running requests have left after SIGTERM; less than a pod's 30."""
_IDLE = 65
"""Seconds that we keep an idle connection: longer than usual proxies do."""


class ApiConnection(TimedProtocol):
    """Answers what cannot be read with the headers that every other answer of the API has."""

    refusal_headers = SAFE_HEADERS | PAGE_HEADERS


class ApiServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, context: Context) -> None:
        super().__init__(config)
        self._context = context

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        AcceptErrors().install(asyncio.get_running_loop())
        await super().startup(sockets)
        log.info("listening", host=self.config.host, port=self.config.port)
        notify_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._context.streams.close()
        await super().shutdown(sockets)


def configured(app: FastAPI, *, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=ApiConnection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application does this, and only for configured proxies
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_REQUESTS_MAY_TAKE,
    )
