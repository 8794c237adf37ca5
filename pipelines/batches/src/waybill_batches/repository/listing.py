"""Lists: an owner's batches, what changed among them, and the files of one. Every statement names the owner."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from waybill_batches.status import ACTIVE, BatchStatus

if TYPE_CHECKING:
    from waybill.db.database import Connection

_BATCH = """
SELECT id, tenant, owner, name, source_name, bytes, sha256, rules::text AS rules, wanted IS NOT NULL AS enriched,
       status, run, run_job, error::text AS error, counts::text AS counts, created_at, finished_at,
       GREATEST(changed_at, created_at) AS updated_at,
       changed::text::bigint AS changed,
       CASE WHEN status NOT IN ('complete_with_errors', 'failed', 'cancelled') THEN false
            WHEN unpacked_at IS NULL THEN source_deleted_at IS NULL
            ELSE summary IS NULL OR EXISTS (
                SELECT FROM batch_files
                 WHERE batch_id = batches.id AND batch_files.status IN ('failed', 'cancelled')
                   AND twin_of IS NULL AND (source_key IS NOT NULL OR extractor IS NOT NULL)) END AS retryable
  FROM batches
"""

_PAGE = f"""
{_BATCH}
 WHERE owner = $1 AND id < $2 AND (cardinality($3::text[]) = 0 OR status = ANY ($3::text[]))
 ORDER BY id DESC
 LIMIT $4
"""

_ONE = f"{_BATCH} WHERE id = $1"

_SUMMARY = "SELECT summary::text FROM batches WHERE id = $1"

_ACTIVE_COUNT = "SELECT count(*) FROM batches WHERE owner = $1 AND status = ANY ($2::text[])"

_NOW = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"

# Those that changed, and those that are worked: their own row does not change while they are.
_CHANGED = f"""
{_BATCH}
 WHERE owner = $1 AND (changed >= $2::text::xid8 OR status = ANY ($3::text[]))
 ORDER BY changed, id
 LIMIT $4
"""

# A queued file is being worked if its job runs. There are never more running jobs than the fleet has slots.
_COUNTS = """
SELECT files.batch_id, files.status, files.number AS files, COALESCE(running.number, 0) AS running
  FROM (SELECT batch_id, status, count(*) AS number FROM batch_files
         WHERE batch_id = ANY ($1::uuid[]) GROUP BY batch_id, status) AS files
  LEFT JOIN (SELECT batch_id, count(*) AS number
               FROM jobs JOIN batch_files ON batch_files.job_id = jobs.id
              WHERE jobs.state = 'running' AND jobs.parent_id = ANY ($2::uuid[]) AND batch_files.status = 'queued'
              GROUP BY batch_id) AS running
    ON running.batch_id = files.batch_id AND files.status = 'queued'
"""

_COLUMNS = """number, doc_id, path, type, bytes, sha256, mapping, status, job_id, error, tries, milliseconds,
       finished_at, reused, result_key, result_at, result_bytes, xml_key, xml_bytes"""

_FOUND = ", ".join(f"found.{name.strip()}" for name in _COLUMNS.split(","))

_FILE = """
SELECT files.number, files.doc_id, files.path, files.type, files.bytes, files.sha256, files.mapping, files.status,
       files.job_id, files.error::text AS error, files.tries, files.milliseconds, files.finished_at, files.reused,
       files.result_key, files.result_at, files.result_bytes, files.xml_key, files.xml_bytes,
       files.status = 'queued' AND jobs.state = 'running' AS running,
       CASE WHEN files.status = 'queued' THEN jobs.attempts ELSE 0 END AS attempts, jobs.kind
"""

# By an index for each status, in the order in which they are wanted, up to the limit. `$5` is the place after which the
# first of them begins.
_FILES = f"""
{_FILE}
  FROM (SELECT {_FOUND}, wanted.place
          FROM unnest($2::text[]) WITH ORDINALITY AS wanted (status, place), LATERAL (
                   SELECT {_COLUMNS} FROM batch_files
                    WHERE batch_id = $1 AND batch_files.status = wanted.status
                      AND number > CASE WHEN wanted.place = 1 THEN $3 ELSE -1 END
                      AND ($5::text IS NULL OR type = $5) AND ($6::text IS NULL OR path ILIKE $6)
                      AND ($7::bool IS NULL OR $7 = EXISTS (
                              SELECT FROM jobs WHERE jobs.id = batch_files.job_id AND jobs.state = 'running'))
                    ORDER BY number
                    LIMIT $4
               ) AS found
         ORDER BY wanted.place, found.number
         LIMIT $4) AS files
  LEFT JOIN all_jobs AS jobs ON jobs.id = files.job_id
 ORDER BY files.place, files.number
"""  # noqa: S608 - made of constants

_FILES_IN_ORDER = f"""
{_FILE}
  FROM (SELECT {_COLUMNS} FROM batch_files
         WHERE batch_id = $1 AND number > $2
           AND ($4::text IS NULL OR type = $4) AND ($5::text IS NULL OR path ILIKE $5)
         ORDER BY number
         LIMIT $3) AS files
  LEFT JOIN all_jobs AS jobs ON jobs.id = files.job_id
 ORDER BY files.number
"""  # noqa: S608 - made of constants

_BY_DOC = f"""
{_FILE}
  FROM batch_files AS files LEFT JOIN all_jobs AS jobs ON jobs.id = files.job_id
 WHERE files.batch_id = $1 AND files.doc_id = $2
 ORDER BY files.number
 LIMIT 1
"""

# The oldest that waits for a worker. None while any of them runs: then the batch gets on, and that is the answer.
_HELD_UP = """
SELECT waiting.id
  FROM (SELECT id FROM jobs
         WHERE parent_id = $1 AND state IN ('scheduled', 'queued') ORDER BY id LIMIT 1) AS waiting
 WHERE NOT EXISTS (SELECT FROM jobs WHERE parent_id = $1 AND state = 'running')
"""

_LAST_ID = uuid.UUID(int=2**128 - 1)


async def page(
    connection: Connection, owner: str, statuses: Sequence[BatchStatus], after: uuid.UUID | None, limit: int
) -> list[Any]:
    """Newest first."""
    return await connection.fetch(_PAGE, owner, after or _LAST_ID, list(statuses), limit)


async def active_count(connection: Connection, owner: str) -> int:
    return int(await connection.fetchval(_ACTIVE_COUNT, owner, list(ACTIVE)))


async def one(connection: Connection, batch_id: uuid.UUID) -> Any | None:
    """Whoever's it is: the caller must look at its `owner`."""
    return await connection.fetchrow(_ONE, batch_id)


async def summary(connection: Connection, batch_id: uuid.UUID) -> dict[str, Any] | None:
    text = await connection.fetchval(_SUMMARY, batch_id)
    return dict(json.loads(text)) if text is not None else None


async def held_up_job(connection: Connection, run_job: uuid.UUID) -> uuid.UUID | None:
    """The oldest job of a run that waits, if none of them runs."""
    found = await connection.fetchval(_HELD_UP, run_job)
    return uuid.UUID(str(found)) if found is not None else None


async def oldest_transaction(connection: Connection) -> int:
    """Below it, everything is visible."""
    return int(await connection.fetchval(_NOW))


async def changed(connection: Connection, owner: str, since: int, limit: int) -> list[Any]:
    """Batches that changed in the transaction `since` or later, and those that are worked now."""
    return await connection.fetch(_CHANGED, owner, str(since), list(ACTIVE), limit)


async def counts(
    connection: Connection, batch_ids: Sequence[uuid.UUID], run_jobs: Sequence[uuid.UUID]
) -> dict[uuid.UUID, dict[str, int]]:
    """How many files these batches have by status; those that are being worked count as `processing`."""
    found: dict[uuid.UUID, dict[str, int]] = {batch_id: {} for batch_id in batch_ids}
    for row in await connection.fetch(_COUNTS, batch_ids, run_jobs):
        counted = found[row["batch_id"]]
        counted[row["status"]] = row["files"] - row["running"]
        if row["running"]:
            counted["processing"] = row["running"]
    return found


async def files(
    connection: Connection,
    batch_id: uuid.UUID,
    *,
    statuses: Sequence[str],
    after: int,
    limit: int,
    kind: str | None = None,
    words: str | None = None,
    running: bool | None = None,
) -> list[Any]:
    """Files by status, in the order in which the statuses are given; in the first of them only those behind `after`."""
    return await connection.fetch(_FILES, batch_id, list(statuses), after, limit, kind, _pattern(words), running)


async def files_in_order(
    connection: Connection,
    batch_id: uuid.UUID,
    *,
    after: int,
    limit: int,
    kind: str | None = None,
    words: str | None = None,
) -> list[Any]:
    """Files in the order of the ZIP."""
    return await connection.fetch(_FILES_IN_ORDER, batch_id, after, limit, kind, _pattern(words))


async def file(connection: Connection, batch_id: uuid.UUID, doc_id: str) -> Any | None:
    return await connection.fetchrow(_BY_DOC, batch_id, doc_id)


def _pattern(words: str | None) -> str | None:
    if not words:
        return None
    escaped = words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
