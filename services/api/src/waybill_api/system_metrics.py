"""What the API shows of the whole system in its metrics: the shared sample, the janitor's figures, and the disk.

A task asks the database every few seconds. A scrape shows the last answer and how old it is, and so never waits for the
database, least of all when the database is what is wrong.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path

import structlog

from waybill import background_tasks
from waybill.config import ApiSettings
from waybill.db import Database
from waybill.janitor import history
from waybill.janitor.history import Figures
from waybill.telemetry import metrics
from waybill_engine import enqueued_elsewhere, samples
from waybill_engine.breaker_models import BreakerState
from waybill_engine.samples import Sample

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_EVERY = 5.0
_WITHIN = 10.0
"""Seconds between two looks, and for one."""
_WORKER_STATES = ("active", "draining", "expired")


class SystemMetrics:
    def __init__(self, settings: ApiSettings, database: Database) -> None:
        self._database = database
        self._folder = settings.storage_url.folder
        self._every = min(_EVERY, settings.sample_interval / 2)
        self._well = True

    def refreshing(self) -> AbstractAsyncContextManager[None]:
        """Look again and again while the block runs."""
        return background_tasks.running(self._run(), "system metrics")

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_WITHIN):
                    await self.refresh()
                self._well = True
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look may go well
                if self._well:  # once, not every few seconds
                    log.warning("system_metrics_not_refreshed", error=type(error).__name__)
                self._well = False
            await asyncio.sleep(self._every)

    async def refresh(self) -> None:
        """Look once."""
        if self._folder is not None:
            show_disk(await asyncio.to_thread(_disk, self._folder))
        async with self._database.hot() as connection:
            sample = await samples.newest(connection)
            figures = await history.figures(connection)
            elsewhere = await enqueued_elsewhere.totals(connection)
        if sample is not None:
            show_sample(sample)
        show_janitor(figures)
        metrics.JOBS_ENQUEUED_ELSEWHERE.replace({(kind, by): jobs for (kind, by), jobs in elsewhere.items()})


def show_sample(sample: Sample) -> None:
    seen = time.monotonic()
    metrics.SAMPLE_AGE.ask(lambda: {(): sample.age + time.monotonic() - seen})
    metrics.QUEUE_JOBS.replace(
        {
            (one.kind, state): count
            for one in sample.kinds
            for state, count in (
                ("queued", one.queued),
                ("scheduled", one.scheduled),
                ("running", one.running),
                ("dead_letter", one.dead_letter),
            )
        }
    )
    metrics.QUEUE_OLDEST.replace({(one.kind,): _age(one.oldest_runnable_at, sample.taken_at) for one in sample.kinds})
    metrics.WORKERS.replace({(state,): sample.workers.get(state, 0) for state in _WORKER_STATES})
    metrics.LIMIT_REACHED.replace({(one.kind, one.limit): float(one.reached) for one in sample.limits})
    metrics.BREAKER_STATE.replace(
        {(name, each.value): float(state == each) for name, state in sample.breakers.items() for each in BreakerState}
    )


def show_janitor(figures: Figures) -> None:
    if figures.started_at is not None:
        metrics.JANITOR_LAST_RUN.set(figures.started_at.timestamp())
    if figures.succeeded_at is not None:
        metrics.JANITOR_LAST_SUCCESS.set(figures.succeeded_at.timestamp())
    if figures.took is not None:
        metrics.JANITOR_RUN.set(figures.took)
    metrics.JANITOR_DONE.replace({(f"{task}.{figure}",): total for (task, figure), total in figures.totals.items()})


def show_disk(found: tuple[int, int] | None) -> None:
    if found is not None:
        size, free = found
        metrics.STORAGE_SIZE.set(size)
        metrics.STORAGE_FREE.set(free)


def _disk(folder: Path) -> tuple[int, int] | None:
    """The size of a folder's disk and how much of it is free, in bytes. None while it is not there."""
    try:
        found = shutil.disk_usage(folder)
    except OSError:
        return None
    return found.total, found.free


def _age(since: datetime | None, now: datetime) -> float:
    return max((now - since).total_seconds(), 0.0) if since is not None else 0.0
