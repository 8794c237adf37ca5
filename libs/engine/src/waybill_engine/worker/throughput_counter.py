"""Counts the jobs that this worker's runs ended, and reports them every few seconds; see `throughput`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Never

import structlog

from waybill.db import Database
from waybill.failures import is_passing_trouble
from waybill_engine import throughput
from waybill_engine.claim import ClaimedJob
from waybill_engine.models import State
from waybill_engine.throughput import Finished

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class ThroughputCounter:
    def __init__(self, db: Database, interval: float) -> None:
        self._db = db
        self._interval = interval
        self._counted: dict[tuple[str, State], Finished] = {}

    def add(self, jobs: Iterable[ClaimedJob], state: State) -> None:
        """These jobs ended for good."""
        one: Finished | None = None
        for job in jobs:
            if one is None or one.kind != job.kind:
                one = self._counted.setdefault((job.kind, state), Finished(job.kind, state.value))
            one.jobs += 1
            one.seconds_queued += job.waited
            one.seconds_running += job.took

    async def run(self) -> Never:
        while True:
            await asyncio.sleep(self._interval)
            await self.report()

    async def report(self) -> None:
        """Write what was counted since the last report. What cannot be written is dropped: it may have been counted."""
        if not self._counted:
            return
        counted, self._counted = self._counted, {}
        try:
            async with self._db.hot() as connection:
                await throughput.add(connection, list(counted.values()))
        except Exception as error:
            jobs = sum(one.jobs for one in counted.values())
            log.warning(
                "throughput_not_reported",
                error=type(error).__name__,
                jobs=jobs,
                exc_info=None if is_passing_trouble(error) else error,
            )
