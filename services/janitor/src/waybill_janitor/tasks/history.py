"""The janitor's own old runs. Their totals stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from waybill.janitor import history
from waybill.janitor.task import Batch, Tally, TaskTools
from waybill_janitor.pages import old
from waybill_janitor.settings import JanitorSettings


class History:
    name = "history"
    items = "old runs of the janitor"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools
        self._days = tools.settings_of(JanitorSettings).events_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        async for batch in old(self._tools, history.old_runs, self._days):
            yield batch

    async def do(self, batch: Batch) -> Tally:
        async with self._tools.database.hot() as connection:
            return Tally(Counter(runs=await history.forget_runs(connection, batch.items)))
