"""The history of ended jobs, once it is old."""

from __future__ import annotations

from collections.abc import AsyncIterator

from waybill_janitor.cutoffs import limits
from waybill_janitor.removal import pages, remove
from waybill_janitor.task import Batch, Tally, Tools

_PAGE = """
SELECT page.job_id,
       NOT kept AND EXISTS (SELECT FROM job_events
                             WHERE job_events.job_id = page.job_id
                               AND at <= now() - COALESCE(events_ttl_days, $4) * interval '1 day') AS due
  FROM (SELECT DISTINCT job_id
          FROM (SELECT job_id FROM job_events
                 WHERE job_id > $1 AND job_id <= $2
                 ORDER BY job_id LIMIT $3) AS events) AS page
  LEFT JOIN LATERAL (SELECT * FROM retained WHERE retained.job_id = page.job_id OFFSET 0) AS retained ON true
 ORDER BY page.job_id
"""

_REMOVE = """
WITH due AS MATERIALIZED (
    SELECT job_id, now() - COALESCE(events_ttl_days, $2) * interval '1 day' AS until
      FROM retained WHERE job_id = ANY ($1::uuid[]) AND NOT kept
), removed AS (
    DELETE FROM job_events USING due
     WHERE job_events.job_id = due.job_id AND job_events.at <= due.until
    RETURNING 1
)
SELECT count(*) AS events FROM removed
"""


class Events:
    name = "events"
    items = "jobs whose history is past its time"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._days = tools.settings.events_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            until = (await limits(connection, self._tools.settings)).events
        async for batch in pages(self._tools, _PAGE, until, self._days):
            yield batch

    async def do(self, batch: Batch) -> Tally:
        return Tally(await remove(self._tools, _REMOVE, batch.items, self._days))
