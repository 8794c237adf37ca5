"""Source documents past their time: the row says that it is gone, then it goes."""

from __future__ import annotations

from collections.abc import AsyncIterator

from waybill_janitor.cutoffs import limits
from waybill_janitor.removal import pages, remove
from waybill_janitor.task import Batch, Tally, Tools

_PAGE = """
SELECT page.job_id,
       NOT kept AND ended_at <= now() - COALESCE(pdf_ttl_days, $4) * interval '1 day' AS due
  FROM (SELECT job_id FROM conversions
         WHERE upload_deleted_at IS NULL AND job_id > $1 AND job_id <= $2
         ORDER BY job_id LIMIT $3) AS page
  LEFT JOIN LATERAL (SELECT * FROM retained WHERE retained.job_id = page.job_id OFFSET 0) AS retained ON true
 ORDER BY page.job_id
"""

_REMOVE = """
WITH due AS MATERIALIZED (
    SELECT job_id FROM retained
     WHERE job_id = ANY ($1::uuid[]) AND NOT kept
       AND ended_at <= now() - COALESCE(pdf_ttl_days, $2) * interval '1 day'
), removed AS (
    UPDATE conversions SET upload_deleted_at = now(), changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = ANY (ARRAY(SELECT job_id FROM due)) AND upload_deleted_at IS NULL
    RETURNING owner, bytes
), told AS (
    SELECT count(pg_notify('waybill_changes', owner)) FROM (SELECT DISTINCT owner FROM removed) AS owners
)
SELECT count(*) AS documents, COALESCE(sum(bytes), 0)::bigint AS bytes FROM removed, told
"""


class Documents:
    name = "documents"
    items = "documents past their time"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._days = tools.settings.pdf_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            until = (await limits(connection, self._tools.settings)).documents
        async for batch in pages(self._tools, _PAGE, until, self._days):
            yield batch

    async def do(self, batch: Batch) -> Tally:
        return Tally(await remove(self._tools, _REMOVE, batch.items, self._days))
