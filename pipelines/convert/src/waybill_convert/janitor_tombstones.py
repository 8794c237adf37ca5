"""What is left of a deleted conversion for those who follow its list, once they have had the time to hear of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from waybill.retention import let_holds_wait
from waybill_janitor.cutoffs import LAST_ID
from waybill_janitor.removal import pages
from waybill_janitor.task import Batch, Tally, Tools

_PAGE = """
SELECT job_id, deleted_at <= now() - $4::float8 * interval '1 day'
       AND NOT EXISTS (SELECT FROM tenants WHERE tenants.name = page.tenant AND hold_at IS NOT NULL) AS due
  FROM (SELECT job_id, deleted_at, tenant FROM conversions
         WHERE deleted_at IS NOT NULL AND job_id > $1 AND job_id <= $2
         ORDER BY job_id LIMIT $3) AS page
 ORDER BY job_id
"""

_REMOVE = """
WITH removed AS (
    DELETE FROM conversions
     WHERE job_id = ANY ($1::uuid[]) AND deleted_at <= now() - $2::float8 * interval '1 day'
       AND NOT EXISTS (SELECT FROM tenants WHERE tenants.name = conversions.tenant AND hold_at IS NOT NULL)
    RETURNING 1
)
SELECT count(*) FROM removed
"""


class Tombstones:
    name = "tombstones"
    items = "tombstones of deleted jobs"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._days = tools.settings.tombstone_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        async for batch in pages(self._tools, _PAGE, LAST_ID, self._days):
            yield batch

    async def do(self, batch: Batch) -> Tally:
        async with self._tools.database.hot() as connection, connection.transaction():
            await let_holds_wait(connection)
            removed = await connection.fetchval(_REMOVE, batch.items, self._days)
        return Tally(Counter(tombstones=removed))
