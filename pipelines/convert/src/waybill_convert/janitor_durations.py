"""How long documents take by their size: kept when the jobs themselves are gone, so that estimates survive them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from waybill_convert.kinds import CONVERT_PDF
from waybill_janitor.task import Batch, Tally, Tools

# The newest few thousand, whatever their age. By powers of two: a document of 100 KB is no neighbour of one of 10 MB.
_LOOK = """
SELECT size::int AS size, count(*)::int AS samples,
       percentile_cont(0.25) WITHIN GROUP (ORDER BY seconds) AS low,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median,
       percentile_cont(0.75) WITHIN GROUP (ORDER BY seconds) AS high
  FROM (SELECT floor(log(2, greatest(recent.bytes, 1)::numeric)) AS size,
               extract(epoch FROM jobs.finished_at - jobs.started_at)::float8 AS seconds
          FROM (SELECT job_id, bytes, status FROM conversions ORDER BY job_id DESC LIMIT 5000) AS recent
          JOIN jobs ON jobs.id = recent.job_id
         WHERE recent.status IN ('complete', 'expired') AND jobs.finished_at > jobs.started_at) AS samples
 GROUP BY size
 ORDER BY size
"""

_KEEP = """
INSERT INTO durations AS known (kind, size, samples, low, median, high, updated_at)
SELECT $1, size, samples, low, median, high, now()
  FROM unnest($2::int[], $3::int[], $4::real[], $5::real[], $6::real[]) AS found (size, samples, low, median, high)
    ON CONFLICT (kind, size) DO UPDATE
       SET samples = excluded.samples, low = excluded.low, median = excluded.median, high = excluded.high,
           updated_at = excluded.updated_at
    WHERE (known.samples, known.low, known.median, known.high)
          IS DISTINCT FROM (excluded.samples, excluded.low, excluded.median, excluded.high)
"""


class Durations:
    name = "durations"
    items = "sizes to note durations of"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            rows = await connection.fetch(_LOOK)
        yield Batch([tuple(row) for row in rows], {"samples": float(sum(row["samples"] for row in rows))})

    async def do(self, batch: Batch) -> Tally:
        columns = [list(column) for column in zip(*batch.items, strict=True)]
        async with self._tools.database.hot() as connection:
            await connection.execute(_KEEP, CONVERT_PDF.name, *columns)
        return Tally()
