"""`python -m waybill_gateway`: loads settings and mappings, starts the parsers, then serves HTTP until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from types import FrameType
from typing import NoReturn

import structlog

from waybill.config import load
from waybill.log import configure, log_crashes
from waybill.telemetry import metrics, metrics_server, traces
from waybill.telemetry.loop_watch import LoopWatch
from waybill_documents.faults import MappingFault
from waybill_gateway.app import create_app
from waybill_gateway.doorkeeper import Doorkeeper
from waybill_gateway.mappings import Mappings
from waybill_gateway.pool import Blueprint, Pool
from waybill_gateway.sandbox.limits import ProcessLimits
from waybill_gateway.server import GatewayServer, configured
from waybill_gateway.settings import GatewaySettings
from waybill_gateway.spool import Spool

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_PARSE = "waybill_gateway.document_tasks:parse"
_MB = 1024 * 1024
_NO_MAPPING = "it is neither NAME.json nor a folder NAME with a mapping.json"
_WHY_CLOSED = (
    "There is no secret, so anybody could send documents here. Set WAYBILL_GATEWAY_SECRET, the same for the gateway,"
    " the API and the workers (openssl rand -hex 32), or WAYBILL_GATEWAY_OPEN=true if everybody may."
)


def main(parse: str = _PARSE) -> None:
    """Run the gateway. It exits with 0 when it was asked to stop, and with 2 when a mapping or a setting is wrong."""
    settings = load(GatewaySettings)
    configure(settings, service="gateway")
    log_crashes()
    traces.start(settings, "gateway")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # we log what matters ourselves
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # the client is told what is wrong with its form
    # uvicorn finishes its requests on SIGTERM and then raises the signal again, which ends up here.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    if not settings.gateway_secrets and not settings.gateway_open:
        log.error("cannot_start", reason=_WHY_CLOSED, setting="WAYBILL_GATEWAY_SECRET")
        sys.exit(2)
    try:
        mappings = Mappings(settings.mappings_dir)
    except MappingFault as fault:
        log.error("mapping_is_wrong", reason=str(fault), setting="WAYBILL_MAPPINGS_DIR")
        sys.exit(2)
    for path in mappings.ignored:
        log.warning("mapping_ignored", path=str(path), reason=_NO_MAPPING, setting="WAYBILL_MAPPINGS_DIR")
    try:
        spool = Spool(settings.gateway_spool_dir)
    except OSError as error:
        log.error("cannot_start", reason=str(error), setting="WAYBILL_GATEWAY_SPOOL_DIR")
        sys.exit(1)
    try:
        asyncio.run(_serve(settings, mappings, spool, parse))
    finally:
        spool.close()
        traces.stop()


async def _serve(settings: GatewaySettings, mappings: Mappings, spool: Spool, parse: str) -> None:
    folder = settings.mappings_dir
    blueprint = Blueprint(
        parse,
        ProcessLimits(memory=settings.gateway_memory_mb * _MB, result=settings.gateway_max_result_mb * _MB),
        options={"mappings_dir": str(folder) if folder else None},
        readable=(folder,) if folder else (),
        writable=(spool.folder,),
    )
    pool = Pool(
        blueprint,
        processes=settings.gateway_processes,
        documents=settings.gateway_documents_per_process,
        resident=settings.gateway_memory_mb * _MB // 2,
    )
    doorkeeper = Doorkeeper(processes=settings.gateway_processes, queue=settings.gateway_queue)
    app = create_app(settings, pool, mappings, spool, doorkeeper)
    config = configured(app, host=settings.gateway_host, port=settings.gateway_port)
    pool.start()
    metrics.expect_parsers()
    metrics.GATEWAY_PARSERS.ask(lambda: pool.use)
    metrics.GATEWAY_WAITING.ask(lambda: {(): pool.waiting})
    try:
        with metrics_server.serving(settings, "gateway", settings.gateway_metrics_port):
            async with LoopWatch().watching():
                await GatewayServer(
                    config, doorkeeper, grace=settings.gateway_shutdown_grace, is_ready=lambda: pool.ready
                ).serve()
    finally:
        await pool.stop()
        log.info("stopped")


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)


if __name__ == "__main__":
    main()
