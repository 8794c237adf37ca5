"""The janitor's own old runs. Their totals stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from waybill_janitor.removal import old
from waybill_janitor.task import Batch, Tally, Tools

_PAGE = """
SELECT id FROM janitor_runs
 WHERE started_at <= now() - $2::float8 * interval '1 day' AND outcome <> 'running' AND id > $1
 ORDER BY id LIMIT $3
"""

_REMOVE = """
WITH tasks AS (
    DELETE FROM janitor_tasks WHERE run_id = ANY ($1::uuid[])
), removed AS (
    DELETE FROM janitor_runs WHERE id = ANY ($1::uuid[]) RETURNING 1
)
SELECT count(*) FROM removed
"""


class History:
    name = "history"
    items = "old runs of the janitor"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._days = tools.settings.events_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        async for batch in old(self._tools, _PAGE, self._days):
            yield batch

    async def do(self, batch: Batch) -> Tally:
        async with self._tools.database.hot() as connection:
            return Tally(Counter(runs=await connection.fetchval(_REMOVE, batch.items)))
