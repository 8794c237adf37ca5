"""The janitor's own old runs. Their totals stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from waybill_janitor.limits import FIRST_ID
from waybill_janitor.planning import BATCH, Batch, Tally, Tools

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
        after = FIRST_ID
        while True:
            async with self._tools.database.hot() as connection:
                rows = await connection.fetch(_PAGE, after, self._days, BATCH)
            if not rows:
                return
            after = rows[-1]["id"]
            yield Batch([row["id"] for row in rows])

    async def do(self, batch: Batch) -> Tally:
        async with self._tools.database.hot() as connection:
            return Tally(Counter(runs=await connection.fetchval(_REMOVE, batch.items)))
