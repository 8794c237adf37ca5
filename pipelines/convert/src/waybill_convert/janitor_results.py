"""Results past their time, or downloaded where that is their time: the job stays listed as expired."""

from __future__ import annotations

from collections.abc import AsyncIterator

from waybill_janitor.cutoffs import LAST_ID, limits
from waybill_janitor.removal import pages, remove
from waybill_janitor.task import Batch, Tally, Tools

# Only what convert published: other pipelines decide for themselves how long their artefacts are worth keeping.
_PAGE = """
SELECT page.job_id,
       converted AND NOT kept AND ended_at <= now() - COALESCE(xml_ttl_days, $4) * interval '1 day' AS due
  FROM (SELECT DISTINCT job_id
          FROM (SELECT job_id FROM job_artefacts
                 WHERE job_id > $1 AND job_id <= $2
                 ORDER BY job_id LIMIT $3) AS artefacts) AS page
  LEFT JOIN LATERAL (SELECT * FROM retained WHERE retained.job_id = page.job_id OFFSET 0) AS retained ON true
 ORDER BY page.job_id
"""

_DOWNLOADED = """
SELECT page.job_id,
       NOT kept AND COALESCE(xml_on_download, $4) AND downloaded_at <= now() - interval '15 minutes' AS due
  FROM (SELECT job_id FROM conversions
         WHERE downloaded_at IS NOT NULL AND status = 'complete' AND job_id > $1 AND job_id <= $2
         ORDER BY job_id LIMIT $3) AS page
  LEFT JOIN LATERAL (SELECT * FROM retained WHERE retained.job_id = page.job_id OFFSET 0) AS retained ON true
 ORDER BY page.job_id
"""

_REMOVE = """
WITH due AS MATERIALIZED (
    SELECT job_id FROM retained
     WHERE job_id = ANY ($1::uuid[]) AND converted AND NOT kept
       AND (ended_at <= now() - COALESCE(xml_ttl_days, $2) * interval '1 day'
            OR (COALESCE(xml_on_download, $3) AND downloaded_at <= now() - interval '15 minutes'))
), removed AS (
    DELETE FROM job_artefacts WHERE job_id = ANY (ARRAY(SELECT job_id FROM due)) RETURNING bytes
), corrections AS (
    DELETE FROM revisions WHERE job_id = ANY (ARRAY(SELECT job_id FROM due)) RETURNING xml_bytes + record_bytes AS bytes
), expired AS (
    UPDATE conversions SET status = 'expired', changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = ANY (ARRAY(SELECT job_id FROM due)) AND status = 'complete'
    RETURNING owner
), told AS (
    SELECT count(pg_notify('waybill_changes', owner)) FROM (SELECT DISTINCT owner FROM expired) AS owners
)
SELECT count(*) AS results, COALESCE(sum(bytes), 0)::bigint AS bytes, (SELECT count(*) FROM expired) AS expired
  FROM (SELECT bytes FROM removed UNION ALL SELECT bytes FROM corrections) AS results, told
"""


class Results:
    name = "results"
    items = "jobs whose results are past their time"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._days = tools.settings.xml_ttl_days
        self._on_download = tools.settings.xml_on_download

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            found = await limits(connection, self._tools.settings)
        async for batch in pages(self._tools, _PAGE, found.results, self._days):
            yield batch
        if found.on_download:
            async for batch in pages(self._tools, _DOWNLOADED, LAST_ID, self._on_download):
                yield batch

    async def do(self, batch: Batch) -> Tally:
        return Tally(await remove(self._tools, _REMOVE, batch.items, self._days, self._on_download))
