"""Being told: LISTEN on a connection of its own, outside any transaction.

Three channels: `waybill_jobs` (a queue has something), `waybill_scheduled` (something is due in so many seconds),
`waybill_control` (look at your jobs, worker). Nothing depends on it: the polls find everything, only later.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Collection
from typing import Never

import structlog

from waybill.db import Database
from waybill.errors import DatabaseUnavailable
from waybill_worker.outages import DatabaseHealth

_PING_EVERY = 4.0
"""Seconds of silence after which the listener makes sure that there still is somebody to listen to."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Listener:
    def __init__(
        self,
        db: Database,
        health: DatabaseHealth,
        *,
        queues: Collection[str],
        worker_id: Callable[[], uuid.UUID],
        on_jobs: Callable[[], None],
        on_scheduled: Callable[[float], None],
        on_control: Callable[[], None],
    ) -> None:
        self._db = db
        self._health = health
        self._queues = frozenset(queues)
        self._worker_id = worker_id
        self._on_jobs = on_jobs
        self._on_scheduled = on_scheduled
        self._on_control = on_control

    async def run(self) -> None:
        await self._health.persist(self._listen)

    async def _listen(self) -> Never:
        """Listen until the connection ends, which is an outage."""
        connection = await self._db.open_connection()
        ended = asyncio.Event()
        try:
            connection.add_termination_listener(lambda *_: ended.set())
            for channel in ("waybill_jobs", "waybill_scheduled", "waybill_control"):
                await connection.add_listener(channel, self._heard)
            # Whatever was said while we were not listening.
            self._on_jobs()
            self._on_scheduled(0.0)
            self._on_control()
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_PING_EVERY):
                        await ended.wait()
                    break
                async with asyncio.timeout(3):
                    await connection.fetchval("SELECT 1")
            raise DatabaseUnavailable("the connection that listens has ended")
        finally:
            connection.terminate()

    def _heard(self, _connection: object, _pid: int, channel: str, payload: object) -> None:
        text = str(payload)
        if channel == "waybill_jobs" and text in self._queues:
            self._on_jobs()
        elif channel == "waybill_control" and text == str(self._worker_id()):
            self._on_control()
        elif channel == "waybill_scheduled":
            try:
                self._on_scheduled(float(text))
            except ValueError:
                log.warning("strange_notification", channel=channel, payload=text[:100])
