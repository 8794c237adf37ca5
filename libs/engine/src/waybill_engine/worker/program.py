"""The worker as a program: one process, or a supervisor over several.

A program that adds handlers of its own is a module whose `__main__` calls `main` with its name and its handlers. The
name matters because a worker starts itself again: its supervised processes and the one for suspects of a crash.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
import uvloop

from waybill import log as logging_setup
from waybill.collector import spare_the_living
from waybill.config import load
from waybill.db import Database
from waybill.errors import WaybillError
from waybill.readiness import notify_ready
from waybill.storage import service_storage
from waybill.telemetry import metrics, traces
from waybill.termination import heed_sigterm
from waybill_engine.registry import declared_schedules, load_handlers
from waybill_engine.settings import HOT_CONNECTIONS, WorkerSettings
from waybill_engine.worker.child_processes import stop_with
from waybill_engine.worker.observation import Observation, first_process, further_process
from waybill_engine.worker.run import STUBBORN
from waybill_engine.worker.supervisor import Supervisor
from waybill_engine.worker.worker import JobRunner

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_OWN_HANDLERS = "waybill_engine.selftest"


def main(program: str, default_handlers: Sequence[str] = (), settings: WorkerSettings | None = None) -> None:
    """Run the worker until it is told to stop, then exit.

    `program` is what `python -m` starts. `default_handlers` are the modules whose handlers it serves, beside the
    selftest's, unless `WAYBILL_WORKER_HANDLERS` names others. Without `settings`, they come from the environment.
    """
    heed_sigterm()  # until the running worker has a handler of its own
    arguments = _arguments(program)
    settings = settings or load(WorkerSettings)
    logging_setup.configure(settings, service="worker")
    logging_setup.log_crashes()
    if arguments.parent is not None:
        stop_with(arguments.parent)
    if settings.worker_processes > 1 and arguments.worker_id is None:
        with first_process(settings, supervises=True) as observation:
            code = asyncio.run(_supervise(settings, program, observation))
    else:
        first = arguments.worker_id is None
        traces.start(settings, "worker")
        with (
            first_process(settings, supervises=False)
            if first
            else further_process(settings, arguments.observed_at, arguments.process)
        ) as observation:
            code = uvloop.run(_work(settings, arguments, program, default_handlers, observation))
        traces.stop()
    sys.exit(code)


def _arguments(program: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program, description="Claims jobs and runs them.")
    # The worker starts its own child processes with these; a person has no use for them.
    parser.add_argument("--worker-id", type=uuid.UUID, help=argparse.SUPPRESS)
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--replaces", type=uuid.UUID, help=argparse.SUPPRESS)
    parser.add_argument("--isolating", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--observed-at", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--process", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def _on_signals(stop: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)


async def _supervise(settings: WorkerSettings, program: str, observation: Observation) -> int:
    supervisor = Supervisor(program, settings.worker_processes, observation.arguments_for)
    _on_signals(supervisor.stop)
    return await supervisor.run()


async def _work(
    settings: WorkerSettings,
    arguments: argparse.Namespace,
    program: str,
    default_handlers: Sequence[str],
    observation: Observation,
) -> int:
    try:
        modules = settings.worker_handlers or [*default_handlers, _OWN_HANDLERS]
        handlers = load_handlers(modules, settings.worker_kinds)
    except (ImportError, LookupError) as error:
        log.error("handlers_not_loaded", error=str(error), setting="WAYBILL_WORKER_HANDLERS, WAYBILL_WORKER_KINDS")
        return 2
    try:
        db = await Database.connect(
            settings, name="waybill-worker", pool_size=settings.worker_database_pool_size, hot_size=HOT_CONNECTIONS
        )
        storage = service_storage(settings, db)
    except WaybillError as error:
        log.error("cannot_start", error=error.message)
        return 1
    code = 0
    try:
        worker = JobRunner(
            settings,
            db,
            storage,
            handlers,
            declared_schedules(),
            program=program,
            worker_id=arguments.worker_id,
            isolating=arguments.isolating,
            observation=observation,
        )
        observation.probes.worker = worker
        metrics.expect(handlers)
        metrics.POOL_CONNECTIONS.ask(db.pool_use)
        _on_signals(worker.stop)
        if arguments.replaces is not None:
            await worker.replace_dead(arguments.replaces)
        spare_the_living()
        async with observation.watch.watching():
            await worker.run(on_ready=notify_ready)
    except Exception:
        log.exception("worker_failed")
        code = 1
    finally:
        await db.close()
    if any(task.get_name() == STUBBORN for task in asyncio.all_tasks()):
        # A handler that ignores its cancellation would keep this process alive for ever. Its job was released long ago.
        log.warning("leaving_stubborn_handlers")
        traces.stop()
        logging.shutdown()
        os._exit(code)
    return code
