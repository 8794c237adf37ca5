"""Takes samples while a process runs. Every worker and every API has one; whoever comes first takes the sample."""

from __future__ import annotations

import asyncio
from typing import Never

import structlog

from waybill.db import Database
from waybill.failures import is_passing_trouble
from waybill_engine.samples import take_if_due

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Sampler:
    def __init__(self, db: Database, interval: float) -> None:
        self._db = db
        self._interval = interval

    async def poll(self) -> None:
        """Take a sample if it is time. Whatever goes wrong is logged: no figure is worth the process that counts it."""
        try:
            async with self._db.hot() as connection:
                await take_if_due(connection, self._interval)
        except Exception as error:
            expected = is_passing_trouble(error)  # the next poll tries again
            log.warning("sample_not_taken", error=type(error).__name__, exc_info=None if expected else error)

    async def run(self) -> Never:
        while True:
            await self.poll()
            await asyncio.sleep(self._interval)
