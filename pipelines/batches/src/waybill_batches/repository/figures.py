"""The figures of a summary. Postgres adds them up, so that a worker's memory does not grow with a batch."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from waybill.db.database import Connection

_BY_STATUS = "SELECT status, count(*) FROM batch_files WHERE batch_id = $1 GROUP BY status"

_BY_TYPE = """
SELECT type, count(*) AS files, count(*) FILTER (WHERE status IN ('complete', 'needs_review')) AS complete,
       count(*) FILTER (WHERE status = 'failed') AS failed, sum(bytes)::bigint AS bytes,
       COALESCE(sum(milliseconds) FILTER (WHERE NOT reused), 0)::float8 AS ms
  FROM batch_files WHERE batch_id = $1
 GROUP BY type
 ORDER BY count(*) DESC, type
"""

_BY_ERROR = """
SELECT error ->> 'code' AS code, error ->> 'key' AS key, min(error ->> 'message') AS message,
       min(error -> 'params' #>> '{}') AS params, count(*) AS files,
       (array_agg(path ORDER BY number))[1:3] AS examples
  FROM batch_files WHERE batch_id = $1 AND status = 'failed'
 GROUP BY 1, 2
 ORDER BY count(*) DESC, 1, 2
 LIMIT 50
"""

_TOTALS = """
SELECT field, amounts ->> 'currency' AS currency, sum(value::numeric)::text AS total, count(*) AS files
  FROM batch_files, jsonb_each_text(amounts -> 'values') AS each (field, value)
 WHERE batch_id = $1 AND status = 'complete' AND amounts IS NOT NULL
 GROUP BY 1, 2
 ORDER BY 1, 2
 LIMIT 100
"""

_SLOWEST = """
SELECT doc_id, path, milliseconds::float8 AS ms FROM batch_files
 WHERE batch_id = $1 AND milliseconds IS NOT NULL AND NOT reused
 ORDER BY milliseconds DESC, number
 LIMIT 10
"""

# Of more folders than anybody looks at, the rest counts in the whole only.
_BY_FOLDER = """
SELECT CASE WHEN place <= 2000 THEN folder ELSE '' END AS folder, sum(files)::bigint AS files,
       sum(complete)::bigint AS complete, sum(failed)::bigint AS failed, sum(bytes)::bigint AS bytes
  FROM (SELECT CASE WHEN path LIKE '%/%' THEN regexp_replace(path, '/[^/]*$', '') ELSE '' END AS folder,
               count(*) AS files, count(*) FILTER (WHERE status IN ('complete', 'needs_review')) AS complete,
               count(*) FILTER (WHERE status = 'failed') AS failed, sum(bytes)::bigint AS bytes,
               row_number() OVER (ORDER BY 1) AS place
          FROM batch_files WHERE batch_id = $1
         GROUP BY 1) AS folders
 GROUP BY 1
 ORDER BY 1
"""

_TIMES = """
SELECT extract(epoch FROM COALESCE(batches.finished_at, now()) - COALESCE(jobs.created_at, batches.created_at))::float8
           * 1000 AS ms,
       now() AS now, (SELECT count(*) FROM batch_files WHERE batch_id = $1 AND reused) AS reused
  FROM batches LEFT JOIN all_jobs AS jobs ON jobs.id = run_job
 WHERE batches.id = $1
"""


class BatchFigures(NamedTuple):
    by_status: dict[str, int]
    by_type: list[dict[str, Any]]
    by_error: list[dict[str, Any]]
    totals: list[dict[str, Any]]
    slowest: list[dict[str, Any]]
    by_folder: list[dict[str, Any]]
    milliseconds: float
    """From the beginning of its run to the end of it."""
    now: Any
    reused: int


async def of_batch(connection: Connection, batch_id: uuid.UUID) -> BatchFigures:
    by_status = {row["status"]: row["count"] for row in await connection.fetch(_BY_STATUS, batch_id)}
    rows = [
        [dict(row) for row in await connection.fetch(statement, batch_id)]
        for statement in (_BY_TYPE, _BY_ERROR, _TOTALS, _SLOWEST, _BY_FOLDER)
    ]
    times = await connection.fetchrow(_TIMES, batch_id)
    assert times is not None  # noqa: S101 - the caller has locked the batch
    return BatchFigures(
        by_status, rows[0], rows[1], rows[2], rows[3], rows[4], times["ms"], times["now"], times["reused"]
    )
