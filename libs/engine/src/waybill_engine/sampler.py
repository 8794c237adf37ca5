"""Takes samples while a process runs. Every worker and every API has one; whoever comes first takes the sample."""

from __future__ import annotations

import asyncio
from typing import Never

import asyncpg
import structlog

from waybill.db import Database
from waybill.failures import is_database_outage
from waybill_engine.samples import take_if_due

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Sampler:
    def __init__(self, db: Database, interval: float) -> None:
        self._db = db
        self._interval = interval

    async def poll(self) -> None:
        """Take a sample if it is time. A database that is away or too slow for it is left alone until the next time."""
        try:
            async with self._db.hot() as connection:
                await take_if_due(connection, self._interval)
        except (OSError, TimeoutError, asyncpg.QueryCanceledError, asyncpg.LockNotAvailableError) as error:
            log.warning("sample_not_taken", error=type(error).__name__)
        except Exception as error:
            if not is_database_outage(error):
                raise
            log.info("sample_not_taken", error=type(error).__name__)

    async def run(self) -> Never:
        while True:
            await self.poll()
            await asyncio.sleep(self._interval)
