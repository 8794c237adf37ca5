"""How long conversions take: recent ones, and what was noted of earlier ones by the size of their document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from waybill_convert.estimates import Noted
from waybill_convert.kinds import CONVERT_PDF

if TYPE_CHECKING:
    from waybill.db.database import Connection

# The newest few thousand, whatever they are, so that a long backlog cannot make it slow.
_SAMPLES = """
SELECT recent.bytes, extract(epoch FROM jobs.finished_at - jobs.started_at)::float8 AS seconds
  FROM (SELECT job_id, bytes, status FROM conversions ORDER BY job_id DESC LIMIT 2000) AS recent
  JOIN all_jobs AS jobs ON jobs.id = recent.job_id
 WHERE recent.status IN ('complete', 'needs_review', 'expired')
   AND jobs.started_at IS NOT NULL AND jobs.finished_at > jobs.started_at
 ORDER BY recent.job_id DESC
 LIMIT $1
"""

_NOTED = "SELECT size, samples, low, median, high FROM durations WHERE kind = $1"

# The newest few thousand, whatever their age. By powers of two: a document of 100 KB is no neighbour of one of 10 MB.
_SUMMARY = """
SELECT size::int AS size, count(*)::int AS samples,
       percentile_cont(0.25) WITHIN GROUP (ORDER BY seconds) AS low,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median,
       percentile_cont(0.75) WITHIN GROUP (ORDER BY seconds) AS high
  FROM (SELECT floor(log(2, greatest(recent.bytes, 1)::numeric)) AS size,
               extract(epoch FROM jobs.finished_at - jobs.started_at)::float8 AS seconds
          FROM (SELECT job_id, bytes, status FROM conversions ORDER BY job_id DESC LIMIT 5000) AS recent
          JOIN all_jobs AS jobs ON jobs.id = recent.job_id
         WHERE recent.status IN ('complete', 'needs_review', 'expired')
           AND jobs.finished_at > jobs.started_at) AS samples
 GROUP BY size
 ORDER BY size
"""

_NOTE = """
INSERT INTO durations AS known (kind, size, samples, low, median, high, updated_at)
SELECT $1, size, samples, low, median, high, now()
  FROM unnest($2::int[], $3::int[], $4::real[], $5::real[], $6::real[]) AS found (size, samples, low, median, high)
    ON CONFLICT (kind, size) DO UPDATE
       SET samples = excluded.samples, low = excluded.low, median = excluded.median, high = excluded.high,
           updated_at = excluded.updated_at
    WHERE (known.samples, known.low, known.median, known.high)
          IS DISTINCT FROM (excluded.samples, excluded.low, excluded.median, excluded.high)
"""


SizeSummary = tuple[int, int, float, float, float]
"""The logarithm of a size to base 2, the number of samples, and their quartiles in seconds."""


async def samples(connection: Connection, limit: int) -> list[tuple[int, float]]:
    """Size and duration of recent conversions that went well."""
    return [(row["bytes"], row["seconds"]) for row in await connection.fetch(_SAMPLES, limit)]


async def noted(connection: Connection) -> dict[int, Noted]:
    """What the janitor noted, by the logarithm of the size to base 2."""
    return {row[0]: Noted(*row[1:]) for row in await connection.fetch(_NOTED, CONVERT_PDF.name)}


async def summary(connection: Connection) -> list[SizeSummary]:
    """The newest conversions by their size."""
    return [tuple(row) for row in await connection.fetch(_SUMMARY)]


async def note(connection: Connection, sizes: Sequence[SizeSummary]) -> None:
    """Keep a summary for when the jobs themselves are gone."""
    await connection.execute(_NOTE, CONVERT_PDF.name, *map(list, zip(*sizes, strict=True)))
