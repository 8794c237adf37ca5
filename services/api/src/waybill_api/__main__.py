"""`python -m waybill_api`: settings, log, database, then HTTP until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from types import FrameType
from typing import NoReturn

import structlog
import uvicorn

from waybill.config import ApiSettings, load
from waybill.db import Database
from waybill.errors import WaybillError
from waybill.log import configure
from waybill.readiness import notify_ready
from waybill_api.app import create_app

log = structlog.get_logger()

_REQUESTS_MAY_TAKE = 20
"""Seconds that running requests have left once we are asked to stop; less than a pod's 30."""


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        log.info("listening", host=self.config.host, port=self.config.port)
        notify_ready()


def main() -> None:
    """Run the API; a stop that was asked for exits with 0."""
    settings = load(ApiSettings)
    configure(settings, service="api")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # what it does well, we say ourselves
    # uvicorn finishes its requests on SIGTERM and then raises it again: this is where it arrives.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    try:
        asyncio.run(_serve(settings))
    except WaybillError as error:
        log.error("cannot_start", reason=error.message)
        sys.exit(1)


async def _serve(settings: ApiSettings) -> None:
    database = await Database.connect(settings, name="waybill api")
    try:
        config = uvicorn.Config(
            create_app(database),
            host=settings.api_host,
            port=settings.api_port,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_REQUESTS_MAY_TAKE,
        )
        await _Server(config).serve()
    finally:
        log.info("stopped")
        await database.close()


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)


if __name__ == "__main__":
    main()
