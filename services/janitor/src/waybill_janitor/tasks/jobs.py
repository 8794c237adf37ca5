"""Ended jobs, when they are old and nothing of them is kept any more: no document, no result, no unique key."""

from __future__ import annotations

from collections.abc import AsyncIterator

from waybill_janitor.cutoffs import limits
from waybill_janitor.removal import pages, remove
from waybill_janitor.task import Batch, Tally, Tools

_PAGE = """
SELECT page.job_id,
       NOT kept AND ended_at <= now() - COALESCE(jobs_ttl_days, $4) * interval '1 day'
       AND (NOT converted OR upload_deleted_at IS NOT NULL)
       AND (unique_scope IS NULL OR unique_scope = 'active' OR unique_until <= now()) IS TRUE
       AND NOT EXISTS (SELECT FROM job_artefacts WHERE job_artefacts.job_id = page.job_id) AS due
  FROM (SELECT id AS job_id FROM jobs
         WHERE id > $1 AND id <= $2
         ORDER BY id LIMIT $3) AS page
  LEFT JOIN LATERAL (SELECT * FROM retained WHERE retained.job_id = page.job_id OFFSET 0) AS retained ON true
 ORDER BY page.job_id
"""

# Its conversion stays as a tombstone, by the trigger of migration 0006.
_REMOVE = """
WITH due AS MATERIALIZED (
    SELECT job_id FROM retained
     WHERE job_id = ANY ($1::uuid[]) AND NOT kept
       AND ended_at <= now() - COALESCE(jobs_ttl_days, $2) * interval '1 day'
       AND (NOT converted OR upload_deleted_at IS NOT NULL)
       AND (unique_scope IS NULL OR unique_scope = 'active' OR unique_until <= now()) IS TRUE
       AND NOT EXISTS (SELECT FROM job_artefacts WHERE job_artefacts.job_id = retained.job_id)
), events AS (
    DELETE FROM job_events WHERE job_id = ANY (ARRAY(SELECT job_id FROM due)) RETURNING 1
), removed AS (
    DELETE FROM jobs WHERE id = ANY (ARRAY(SELECT job_id FROM due)) RETURNING 1
)
SELECT (SELECT count(*) FROM removed) AS jobs, (SELECT count(*) FROM events) AS events
"""


class Jobs:
    name = "jobs"
    items = "ended jobs past their time"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._days = tools.settings.jobs_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            until = (await limits(connection, self._tools.settings)).jobs
        async for batch in pages(self._tools, _PAGE, until, self._days):
            yield batch

    async def do(self, batch: Batch) -> Tally:
        return Tally(await remove(self._tools, _REMOVE, batch.items, self._days))
