"""Writes the progress of running jobs: handlers report as often as they like, and the latest report is written."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping

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
        self._second_tries: dict[uuid.UUID, Progress] = {}
        """What could not be written once. Somebody had locked the job's row, or it belongs to a run that ended or was
        taken over; the heartbeat deals with those."""

    def note(self, job: ClaimedJob, fraction: float, message: str | None) -> None:
        self._news[job.id] = Progress(job.id, job.token, job.worker_id, fraction, message[:500] if message else None)
        self._some.set()

    def forget(self, job_id: uuid.UUID) -> None:
        """Drop what was not written yet, because the job has ended."""
        if self._news or self._second_tries:  # mostly there is none, and looking an id up costs something
            self._news.pop(job_id, None)
            self._second_tries.pop(job_id, None)

    async def run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            first_tries, self._news = self._news, {}
            news = self._second_tries | first_tries
            if news:
                written = await self._health.persist(lambda news=news: self._write(news))  # type: ignore[misc]
                self._second_tries = {job_id: one for job_id, one in first_tries.items() if job_id not in written}
                if self._second_tries:
                    self._some.set()
            await asyncio.sleep(_EVERY)

    async def _write(self, news: Mapping[uuid.UUID, Progress]) -> set[uuid.UUID]:
        async with self._db.hot() as connection:
            return await write_progress(connection, list(news.values()))
