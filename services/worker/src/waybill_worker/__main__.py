"""`python -m waybill_worker`: one worker process, or a supervisor over several."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
import uuid
from collections.abc import Callable

import structlog
import uvloop

from waybill import log as logging_setup
from waybill.config import WorkerSettings, load
from waybill.db import Database
from waybill.errors import WaybillError
from waybill.readiness import notify_ready
from waybill.storage import storage_of
from waybill_convert.clients.gateway import Gateway
from waybill_engine.context import Outside
from waybill_engine.registry import load_handlers
from waybill_engine.worker.child_processes import stop_with
from waybill_engine.worker.run import STUBBORN
from waybill_engine.worker.scheduler import declared
from waybill_engine.worker.supervisor import Supervisor
from waybill_engine.worker.worker import Worker

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def main() -> None:
    arguments = _arguments()
    settings = load(WorkerSettings)
    logging_setup.configure(settings, service="worker")
    if arguments.parent is not None:
        stop_with(arguments.parent)
    if settings.worker_processes > 1 and arguments.worker_id is None:
        code = asyncio.run(_supervise(settings))
    else:
        code = uvloop.run(_work(settings, arguments))
    sys.exit(code)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="waybill_worker", description="Claims jobs and runs them.")
    # The worker starts itself with these; a person has no use for them.
    parser.add_argument("--worker-id", type=uuid.UUID, help=argparse.SUPPRESS)
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--replaces", type=uuid.UUID, help=argparse.SUPPRESS)
    parser.add_argument("--isolating", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _spare_the_collector() -> None:
    """Have the collector of cycles look at what jobs leave behind, and less often.

    The engine makes no cycles, but thousands of objects a second that come and go: with Python's defaults an eighth of
    a busy worker's time goes into looking them over, together with everything that was imported.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _on_signals(stop: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)


async def _supervise(settings: WorkerSettings) -> int:
    supervisor = Supervisor(settings.worker_processes)
    _on_signals(supervisor.stop)
    return await supervisor.run()


async def _work(settings: WorkerSettings, arguments: argparse.Namespace) -> int:
    try:
        handlers = load_handlers(settings.worker_handlers, settings.worker_kinds)
    except (ImportError, LookupError) as error:
        log.error("handlers_not_loaded", error=str(error), setting="WAYBILL_WORKER_HANDLERS, WAYBILL_WORKER_KINDS")
        return 2
    try:
        storage = storage_of(settings)
        db = await Database.connect(settings, name="waybill-worker")
    except WaybillError as error:
        log.error("cannot_start", error=error.message)
        return 1
    code = 0
    gateway = Gateway(settings.gateway_url, settings.gateway_timeout)
    try:
        worker = Worker(
            settings,
            db,
            Outside(storage, gateway),
            handlers,
            declared(),
            worker_id=arguments.worker_id,
            isolating=arguments.isolating,
        )
        _on_signals(worker.stop)
        if arguments.replaces is not None:
            await worker.replace_dead(arguments.replaces)
        _spare_the_collector()
        await worker.run(on_ready=notify_ready)
    except Exception:
        log.exception("worker_failed")
        code = 1
    finally:
        await gateway.close()
        await db.close()
    if any(task.get_name() == STUBBORN for task in asyncio.all_tasks()):
        # A handler that ignores its cancellation would keep this process for ever; its job was released long ago.
        log.warning("leaving_stubborn_handlers")
        logging.shutdown()
        os._exit(code)
    return code


if __name__ == "__main__":
    main()
