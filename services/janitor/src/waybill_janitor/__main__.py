"""`python -m waybill_janitor`: one run, then exit; with `--every` one run after another, as `waybill up` starts it."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys

import structlog

from waybill import log as logging_setup
from waybill.audit import Actor, acting_as
from waybill.config import ProcessSettings
from waybill.config.registry import load_service
from waybill.db import Database
from waybill.errors import LeaseLost, WaybillError
from waybill.failures import classify, is_database_outage
from waybill.janitor.models import TaskOutcome
from waybill.janitor.task import TaskTools
from waybill.readiness import notify_ready
from waybill.storage import service_storage
from waybill.telemetry import traces
from waybill.termination import heed_sigterm
from waybill_janitor.composition import all_tasks
from waybill_janitor.lease import JanitorLease, holder
from waybill_janitor.report import counts, line, record
from waybill_janitor.run import JanitorRun, Reported, TaskReport, plan
from waybill_janitor.settings import JanitorSettings

log: structlog.stdlib.BoundLogger = structlog.get_logger()

OK, FAILED, UNREACHABLE = 0, 1, 3


def main() -> None:
    heed_sigterm()
    arguments = _arguments()
    settings, pipeline_settings = load_service(JanitorSettings)
    logging_setup.configure(settings, service="janitor")
    logging_setup.log_crashes()
    os.nice(10)  # whoever converts documents on this machine goes first
    traces.start(settings, "janitor")
    try:
        code = asyncio.run(_work(settings, pipeline_settings, arguments))
    finally:
        traces.stop()
    sys.exit(code)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="waybill_janitor", description="Cleans up once, and exits.")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--json", action="store_true", help="say it as JSON")
    parser.add_argument("--all", action="store_true", help="compare all of the storage with all rows, now")
    parser.add_argument("--every", action="store_true", help="go on, every WAYBILL_JANITOR_INTERVAL")
    return parser.parse_args()


async def _work(
    settings: JanitorSettings, pipeline_settings: list[ProcessSettings], arguments: argparse.Namespace
) -> int:
    try:
        database = await Database.connect(settings, name="waybill janitor")
    except WaybillError as error:
        log.error("cannot_start", error=error.message)
        return UNREACHABLE if is_database_outage(error) else 2
    storage = service_storage(settings, database)
    tools = TaskTools(database, storage, settings, *pipeline_settings, compare_all=arguments.all)
    try:
        with acting_as(Actor("system:janitor")):
            if arguments.every:
                return await _again_and_again(tools)
            if arguments.dry_run:
                return await _look(tools, as_json=arguments.json)
            return await _once(tools, as_json=arguments.json)
    except LeaseLost as error:
        log.error("lease_lost", error=error.message)
        return FAILED
    except Exception as error:
        if not is_database_outage(error):
            raise
        log.error("database_lost", error=classify(error).message)
        return UNREACHABLE
    finally:
        await database.close()


async def _look(tools: TaskTools, *, as_json: bool) -> int:
    # Whoever asks for a look at everything wants all of it. It locks nothing, so it may take its time.
    limit = None if tools.compare_all else tools.settings_of(JanitorSettings).janitor_task_time_limit
    reports = await plan(all_tasks(tools), _silent if as_json else _say_plan, task_limit=limit)
    if as_json:
        _print(json.dumps({"dry_run": True, "tasks": [record(one, dry_run=True) for one in reports]}, indent=2))
    return _code(reports)


async def _once(tools: TaskTools, *, as_json: bool) -> int:
    lease = await JanitorLease.take(tools.database)
    if lease is None:
        busy = await holder(tools.database)
        if as_json:
            _print(json.dumps({"busy": busy, "tasks": []}, indent=2))
        else:
            _print(f"Another janitor is at work ({busy}); nothing was done.")
        return OK
    reports = await _run(tools, lease, _silent if as_json else _say)
    if as_json:
        _print(json.dumps({"dry_run": False, "tasks": [record(one) for one in reports]}, indent=2))
    return _code(reports)


async def _run(tools: TaskTools, lease: JanitorLease, reported: Reported) -> list[TaskReport]:
    settings = tools.settings_of(JanitorSettings)
    run = JanitorRun(
        tools.database, lease, limit=settings.janitor_time_limit, task_limit=settings.janitor_task_time_limit
    )
    try:
        return await run.go(all_tasks(tools), reported)
    finally:
        await lease.release(tools.database)


async def _again_and_again(tools: TaskTools) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    interval = tools.settings_of(JanitorSettings).janitor_interval
    log.info("cleaning_up", every_seconds=interval)
    notify_ready()
    stopping = asyncio.create_task(stop.wait())
    while not stop.is_set():
        running = asyncio.create_task(_quietly(tools))
        await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            # Safe to end anywhere, so nobody waits for it.
            running.cancel()
            await asyncio.wait([running])
        else:
            running.result()
        await asyncio.wait([stopping], timeout=interval)
    return OK


async def _quietly(tools: TaskTools) -> None:
    """One run that says only what is worth saying. Whatever goes wrong, there will be another."""
    try:
        lease = await JanitorLease.take(tools.database)
        if lease is not None:
            await _run(tools, lease, _log)
    except Exception as error:  # noqa: BLE001 - told, and tried again after the interval
        log.error("run_failed", error=classify(error).message)


def _log(report: TaskReport) -> None:
    if report.outcome is TaskOutcome.FAILED:
        log.error("task", task=report.task.name, error=report.error)
    elif said := counts(report):
        log.info("task", task=report.task.name, did=said, seconds=round(report.seconds, 1))


def _say(report: TaskReport) -> None:
    _print(line(report))


def _say_plan(report: TaskReport) -> None:
    _print(line(report, dry_run=True))


def _silent(report: TaskReport) -> None:
    del report


def _code(reports: list[TaskReport]) -> int:
    return FAILED if any(report.outcome is TaskOutcome.FAILED for report in reports) else OK


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
