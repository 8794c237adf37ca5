"""Workers that stopped or went missing long ago leave the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from waybill.janitor.task import Batch, Tally, TaskTools
from waybill_engine.leftovers import forget_workers, gone_workers
from waybill_janitor.pages import old
from waybill_janitor.settings import JanitorSettings


class Workers:
    name = "workers"
    items = "workers gone for long"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools
        self._days = tools.settings_of(JanitorSettings).worker_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        async for batch in old(self._tools, gone_workers, self._days):
            yield batch

    async def do(self, batch: Batch) -> Tally:
        async with self._tools.database.hot() as connection:
            return Tally(Counter(workers=await forget_workers(connection, batch.items)))
