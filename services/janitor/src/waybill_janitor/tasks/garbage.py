"""Stored objects that no row names any more, by whoever's hand: removed, then forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import structlog

from waybill import garbage
from waybill.janitor.task import BATCH, Batch, Tally, TaskTools

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Garbage:
    name = "garbage"
    items = "stored objects that no row names any more"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools

    async def plan(self) -> AsyncIterator[Batch]:
        after = ""
        while True:
            async with self._tools.database.hot() as connection:
                keys = await garbage.some(connection, after, limit=BATCH)
            if not keys:
                return
            after = keys[-1]
            yield Batch(keys)

    async def do(self, batch: Batch) -> Tally:
        swept = await garbage.sweep(self._tools.database, self._tools.storage, batch.items)
        tally = Tally(Counter(objects=swept.objects))
        for key, error in swept.failed.items():
            log.warning("not_removed", key=key, error=error.message)
            tally.trouble = error.message
        return tally
