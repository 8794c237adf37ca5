"""Progress of running jobs: handlers speak as often as they like, the latest word is written now and then."""

from __future__ import annotations

import asyncio
import uuid

from waybill.db import Database
from waybill_engine import Lease
from waybill_engine.lease import Progress, write_progress
from waybill_engine.worker.database_health import DatabaseHealth

_EVERY = 0.25


class ProgressWriter:
    def __init__(self, db: Database, health: DatabaseHealth) -> None:
        self._db = db
        self._health = health
        self._news: dict[uuid.UUID, Progress] = {}
        self._some = asyncio.Event()

    def note(self, lease: Lease, fraction: float, message: str | None) -> None:
        self._news[lease.id] = Progress(lease.id, lease.token, fraction, message[:500] if message else None)
        self._some.set()

    def forget(self, job_id: uuid.UUID) -> None:
        """The job has ended: what was not written yet no longer matters."""
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
            # What is refused belongs to a run that ended or lost its lease; the heartbeat deals with that.
            await write_progress(connection, news)
