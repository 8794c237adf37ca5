"""One run: every task in order, each within its time limit, under the lease, and recorded as it goes."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

import structlog

from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Code, LeaseLost
from waybill.failures import classify
from waybill.janitor import history
from waybill.janitor.models import TaskOutcome
from waybill.janitor.task import Batch, Tally, Task
from waybill.telemetry import spans
from waybill_janitor import scan_cursor
from waybill_janitor.lease import JanitorLease, myself

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_RENEW_EVERY = 5.0
_SHARE = 0.7
"""The share of the time that it works at most. Nobody waits for it, and many wait for what it works on."""


@dataclass(slots=True)
class TaskReport:
    """What became of one task."""

    task: Task
    outcome: TaskOutcome = TaskOutcome.RUNNING
    done: Counter[str] = field(default_factory=Counter)
    found: dict[str, float] = field(default_factory=dict)
    planned: int = 0
    seconds: float = 0.0
    error: str | None = None
    code: Code | None = None
    """Of the taxonomy, if an exception ended the task."""


Reported = Callable[[TaskReport], None]


async def plan(tasks: Sequence[Task], reported: Reported, *, task_limit: float | None) -> list[TaskReport]:
    """Only look: what a run would do now, by the same plans."""
    reports = []
    for task in tasks:
        report = TaskReport(task)
        started = time.monotonic()
        try:
            async with asyncio.timeout(task_limit):
                async for batch in task.plan():
                    report.planned += len(batch.items)
                    report.found |= batch.found
            report.outcome = TaskOutcome.DONE
        except TimeoutError:
            report.outcome = TaskOutcome.UNFINISHED
        except Exception as error:  # noqa: BLE001 - the other tasks are planned all the same
            report.outcome, report.error = TaskOutcome.FAILED, classify(error).message
        report.seconds = time.monotonic() - started
        reports.append(report)
        reported(report)
    return reports


class JanitorRun:
    def __init__(self, database: Database, lease: JanitorLease, *, limit: float, task_limit: float) -> None:
        self._database = database
        self._lease = lease
        self._until = time.monotonic() + limit
        self._task_limit = task_limit
        self._id = uuid.UUID(int=0)
        self._renewed = time.monotonic()

    async def go(self, tasks: Sequence[Task], reported: Reported) -> list[TaskReport]:
        with spans.span("janitor run") as span:
            reports = await self._go(tasks, reported)
            failed = [report.task.name for report in reports if report.outcome is TaskOutcome.FAILED]
            span.set({"waybill.janitor.tasks": len(reports), "waybill.janitor.failed": failed})
        return reports

    async def _go(self, tasks: Sequence[Task], reported: Reported) -> list[TaskReport]:
        async with self._database.hot() as connection:
            self._id = await history.begin(connection, myself())
        reports: list[TaskReport] = []
        for task in tasks:
            with spans.span(f"janitor {task.name}") as span:
                reports.append(await self._task(task))
                _describe(span, reports[-1])
            reported(reports[-1])
        outcomes = {report.outcome for report in reports}
        outcome = next(
            (one for one in (TaskOutcome.FAILED, TaskOutcome.UNFINISHED) if one in outcomes), TaskOutcome.DONE
        )
        async with self._database.hot() as connection:
            await history.end(connection, self._id, outcome)
        return reports

    async def _task(self, task: Task) -> TaskReport:
        report = TaskReport(task)
        started = time.monotonic()
        async with self._database.hot() as connection:
            await self._renew(connection)
            await history.begin_task(connection, self._id, task.name)
        try:
            async with asyncio.timeout(max(0.0, min(self._task_limit, self._until - started))):
                async with aclosing(cast("Any", task.plan())) as batches:
                    async for batch in batches:
                        await self._batch(task, batch, report)
            report.outcome = TaskOutcome.FAILED if report.error else TaskOutcome.DONE
        except TimeoutError:
            report.outcome = TaskOutcome.UNFINISHED
        except LeaseLost:
            raise
        except Exception as error:
            understood = classify(error)
            log.error("task_failed", task=task.name, code=understood.code.value, exc_info=error)
            report.outcome, report.error, report.code = TaskOutcome.FAILED, understood.message, understood.code
        report.seconds = time.monotonic() - started
        async with self._database.hot() as connection:
            await history.end_task(connection, self._id, task.name, report.outcome, report.error)
        return report

    async def _batch(self, task: Task, batch: Batch, report: TaskReport) -> None:
        started = time.monotonic()
        tally = await task.do(batch) if batch.items else Tally()
        report.done += tally.done
        report.found |= {**batch.found, **tally.found}
        report.error = report.error or tally.trouble
        # A page with nothing to do is not worth a write.
        if batch.items or batch.found or batch.cursor or started > self._renewed + _RENEW_EVERY:
            async with self._database.hot() as connection:
                await self._renew(connection)
                await history.note(
                    connection, self._id, task.name, done=report.done, found=report.found, added=tally.done
                )
                if batch.cursor is not None:
                    await scan_cursor.save(connection, task.name, batch.cursor)
        if batch.items:
            await asyncio.sleep((time.monotonic() - started) * (1 / _SHARE - 1))

    async def _renew(self, connection: Connection) -> None:
        await self._lease.renew(connection)
        self._renewed = time.monotonic()


def _describe(span: spans.Span, report: TaskReport) -> None:
    """What a task did, on its span: counts, and never what was removed."""
    span.set({f"waybill.janitor.{name}": count for name, count in report.done.items()})
    if report.outcome is TaskOutcome.FAILED:
        span.fail(report.code or Code.UNKNOWN)
    elif report.outcome is TaskOutcome.UNFINISHED:
        span.event("time is up")
