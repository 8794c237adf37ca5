"""`python -m waybill_gateway`: settings, log, mappings, parsing processes, then HTTP until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from types import FrameType
from typing import NoReturn

import structlog

from waybill.config import GatewaySettings, load
from waybill.log import configure
from waybill_documents.faults import MappingFault
from waybill_gateway.admission import Admission
from waybill_gateway.app import create_app
from waybill_gateway.catalogue import Catalogue
from waybill_gateway.pool import Blueprint, Pool
from waybill_gateway.sandbox.limits import Limits
from waybill_gateway.server import Server, configured
from waybill_gateway.spool import Spool

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_PARSE = "waybill_gateway.document_tasks:parse"
_MB = 1024 * 1024


def main(parse: str = _PARSE) -> None:
    """Run the gateway; a stop that was asked for exits with 0, a mapping that is wrong with 2."""
    settings = load(GatewaySettings)
    configure(settings, service="gateway")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # what it does well, we say ourselves
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # what is wrong with a form, its sender hears
    # uvicorn finishes its requests on SIGTERM and then raises it again: this is where it arrives.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    try:
        catalogue = Catalogue(settings.gateway_mappings_dir)
    except MappingFault as fault:
        log.error("mapping_is_wrong", reason=str(fault), setting="WAYBILL_GATEWAY_MAPPINGS_DIR")
        sys.exit(2)
    try:
        spool = Spool(settings.gateway_spool_dir)
    except OSError as error:
        log.error("cannot_start", reason=str(error), setting="WAYBILL_GATEWAY_SPOOL_DIR")
        sys.exit(1)
    try:
        asyncio.run(_serve(settings, catalogue, spool, parse))
    finally:
        spool.close()


async def _serve(settings: GatewaySettings, catalogue: Catalogue, spool: Spool, parse: str) -> None:
    folder = settings.gateway_mappings_dir
    blueprint = Blueprint(
        parse,
        Limits(memory=settings.gateway_memory_mb * _MB, result=settings.gateway_max_result_mb * _MB),
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
    admission = Admission(processes=settings.gateway_processes, queue=settings.gateway_queue)
    app = create_app(settings, pool, catalogue, spool, admission)
    config = configured(app, host=settings.gateway_host, port=settings.gateway_port)
    pool.start()
    try:
        await Server(config, admission, grace=settings.gateway_shutdown_grace, is_ready=lambda: pool.ready).serve()
    finally:
        await pool.stop()
        log.info("stopped")


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)


if __name__ == "__main__":
    main()
