"""Writes the progress of running jobs: handlers report as often as they like, and the latest report is written."""

from __future__ import annotations

import asyncio
import uuid

from waybill.db import Database
from waybill_engine.claim import ClaimedJob
from waybill_engine.lease import Progress, write_progress
from waybill_engine.worker.database_health import DatabaseHealth

_EVERY = 0.25
"""Seconds between writes."""


class ProgressWriter:
    def __init__(self, db: Database, health: DatabaseHealth) -> None:
        self._db = db
        self._health = health
        self._news: dict[uuid.UUID, Progress] = {}
        self._some = asyncio.Event()

    def note(self, job: ClaimedJob, fraction: float, message: str | None) -> None:
        self._news[job.id] = Progress(job.id, job.token, job.worker_id, fraction, message[:500] if message else None)
        self._some.set()

    def forget(self, job_id: uuid.UUID) -> None:
        """Drop what was not written yet, because the job has ended."""
        self._news.pop(job_id, None)

    async def run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            news, self._news = list(self._news.values()), {}
            if news:
                await self._health.persist(lambda news=news: self._write(news))  # type: ignore[misc]
            await asyncio.sleep(_EVERY)

    async def _write(self, news: list[Progress]) -> None:
        async with self._db.hot() as connection:
            # Refused reports belong to runs that ended or were taken over; the heartbeat deals with those.
            await write_progress(connection, news)
