"""Counts the statements that a database's connections send."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from waybill.db import Database
from waybill.db.database import Connection


class Statements:
    """The statements that connections send, noted by the driver as Postgres answers them."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    @asynccontextmanager
    async def counting(self, db: Database) -> AsyncIterator[None]:
        hot = db.hot

        @asynccontextmanager
        async def watched(*, urgent: bool = False) -> AsyncIterator[Connection]:
            async with hot(urgent=urgent) as connection:
                with connection.query_logger(self._note):
                    yield connection

        db.hot = watched  # type: ignore[method-assign]
        try:
            yield
        finally:
            db.hot = hot  # type: ignore[method-assign]

    def _note(self, record: asyncpg.connection.LoggedQuery) -> None:
        self.sent.append(record.query)
