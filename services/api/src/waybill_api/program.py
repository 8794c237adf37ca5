"""The program: load the settings, connect to the database, and serve HTTP until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType
from typing import NoReturn

import structlog

from waybill.collector import spare_the_living
from waybill.config import ApiSettings, ProcessSettings
from waybill.config.registry import load_service
from waybill.db import Database
from waybill.errors import WaybillError
from waybill.log import configure, log_crashes
from waybill.storage import service_storage
from waybill.telemetry import metrics, metrics_server, traces
from waybill.telemetry.loop_watch import LoopWatch
from waybill_api.app import create_app
from waybill_api.server import ApiServer, configured
from waybill_api.system_metrics import SystemMetrics

log = structlog.get_logger()


def main() -> None:
    """Run the API. SIGTERM and SIGINT exit with 0."""
    settings, pipeline_settings = load_service(ApiSettings)
    configure(settings, service="api")
    log_crashes()
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # we log starts and stops ourselves
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # the client hears what is wrong with its form
    # uvicorn finishes its requests on SIGTERM and then raises the signal again, for these handlers.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    traces.start(settings, "api")
    try:
        asyncio.run(_serve(settings, pipeline_settings))
    except WaybillError as error:
        log.error("cannot_start", reason=error.message)
        sys.exit(1)
    finally:
        traces.stop()


async def _serve(settings: ApiSettings, pipeline_settings: list[ProcessSettings]) -> None:
    database = await Database.connect(settings, name="waybill api", patience=settings.api_database_timeout)
    try:
        app = create_app(settings, database, service_storage(settings, database), pipeline_settings=pipeline_settings)
        config = configured(app, host=settings.api_host, port=settings.api_port)
        server = ApiServer(config, app.state.context)
        spare_the_living()
        async with _observed(settings, database):
            await server.serve()
    finally:
        log.info("stopped")
        await database.close()


@asynccontextmanager
async def _observed(settings: ApiSettings, database: Database) -> AsyncIterator[None]:
    """Serve this process's metrics, unless nobody wants them."""
    if not settings.api_metrics_port:
        yield
        return
    metrics.POOL_CONNECTIONS.ask(database.pool_use)
    metrics.expect_limits()
    with metrics_server.serving(settings, "api", settings.api_metrics_port):
        async with LoopWatch().watching(), SystemMetrics(settings, database).refreshing():
            yield


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)
