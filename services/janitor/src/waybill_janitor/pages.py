"""Paging through rows of which only the age counts."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from waybill.db.database import Connection
from waybill.janitor.task import BATCH, Batch, TaskTools

OldRows = Callable[[Connection, uuid.UUID, float, int], Awaitable[Sequence[uuid.UUID]]]
"""The next ids after one, of rows older than so many days, up to a limit."""


async def old(tools: TaskTools, find: OldRows, days: float) -> AsyncIterator[Batch]:
    """A plan's pages."""
    after = uuid.UUID(int=0)
    while True:
        async with tools.database.hot() as connection:
            ids = await find(connection, after, days, BATCH)
        if not ids:
            return
        after = ids[-1]
        yield Batch(ids)
