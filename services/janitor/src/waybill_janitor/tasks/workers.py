"""Workers that stopped or went missing long ago leave the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from waybill_janitor.removal import old
from waybill_janitor.task import Batch, Tally, Tools

_PAGE = """
SELECT id FROM workers
 WHERE state IN ('stopped', 'gone') AND stopped_at <= now() - $2::float8 * interval '1 day' AND id > $1
   AND NOT EXISTS (SELECT FROM jobs WHERE lease_owner = workers.id)
 ORDER BY id LIMIT $3
"""

_REMOVE = """
WITH removed AS (
    DELETE FROM workers
     WHERE id = ANY ($1::uuid[]) AND state IN ('stopped', 'gone')
       AND NOT EXISTS (SELECT FROM jobs WHERE lease_owner = workers.id)
    RETURNING 1
)
SELECT count(*) FROM removed
"""


class Workers:
    name = "workers"
    items = "workers gone for long"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._days = tools.settings.worker_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        async for batch in old(self._tools, _PAGE, self._days):
            yield batch

    async def do(self, batch: Batch) -> Tally:
        async with self._tools.database.hot() as connection:
            return Tally(Counter(workers=await connection.fetchval(_REMOVE, batch.items)))
