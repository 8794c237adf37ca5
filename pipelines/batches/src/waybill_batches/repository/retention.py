"""What the janitor asks about batches: what is past its age, and which stored objects rows name.

Everything of a batch but its ZIP is an artefact of one of its jobs. An age counts from the end of the batch's last run.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from waybill.retention import NamedObject, StoredObject
from waybill_batches.repository import enrichments
from waybill_batches.repository.batches import recount
from waybill_engine.retention import remove_artefacts

if TYPE_CHECKING:
    from waybill.db.database import Connection

JobIds = Sequence[uuid.UUID]

# The job's payload names its batch. A batch that is gone keeps nothing. Whoever checks a value looks at the document,
# so the files stay as long as one of them waits for that, or is pinned.
_DUE = """
SELECT job_retention.job_id
  FROM job_retention
  JOIN all_jobs AS jobs ON jobs.id = job_retention.job_id
  LEFT JOIN batches ON batches.id = (jobs.payload ->> 'batch')::uuid
  LEFT JOIN retention_ages ON retention_ages.tenant = job_retention.tenant AND rule = $4
 WHERE job_retention.job_id = ANY ($1::uuid[]) AND job_retention.kind = ANY ($3::text[]) AND NOT kept
   AND (batches.id IS NULL
        OR batches.status NOT IN ('queued', 'processing')
           AND batches.finished_at <= now() - COALESCE(days, $2) * interval '1 day')
   AND NOT (job_retention.kind = 'process_batch' AND EXISTS (
           SELECT FROM batch_files LEFT JOIN all_jobs AS child ON child.id = batch_files.job_id
            WHERE batch_files.batch_id = batches.id AND mapping IS NOT NULL
              AND (batch_files.status = 'needs_review' OR child.pinned_at IS NOT NULL)))
"""

# A ZIP that could not be unpacked is kept as long as files are. Of one that was, nothing is left.
_WITH_ZIP = """
SELECT id AS job_id FROM batches
 WHERE source_deleted_at IS NULL AND id > $1 AND id <= $2
 ORDER BY id LIMIT $3
"""

_ZIPS_DUE = """
SELECT batches.id AS job_id
  FROM batches
  JOIN job_retention ON job_retention.job_id = batches.id
  LEFT JOIN retention_ages ON retention_ages.tenant = job_retention.tenant AND rule = 'batch_files'
 WHERE batches.id = ANY ($1::uuid[]) AND source_deleted_at IS NULL AND NOT kept
   AND status NOT IN ('queued', 'processing')
   AND batches.finished_at <= now() - COALESCE(days, $2) * interval '1 day'
"""

_REMOVE_ZIPS = """
WITH removed AS (
    UPDATE batches SET source_deleted_at = now(), changed = pg_current_xact_id(), changed_at = now()
     WHERE id = ANY ($1::uuid[]) AND source_deleted_at IS NULL
    RETURNING owner, bytes
), told AS (
    SELECT count(waybill_tell(owner)) FROM (SELECT DISTINCT owner FROM removed) AS owners
)
SELECT count(*) AS zips, COALESCE(sum(bytes), 0)::bigint AS bytes FROM removed, told
"""

_FORGET_SOURCES = "UPDATE batch_files SET source_key = NULL, source_at = NULL WHERE batch_id = ANY ($1::uuid[])"

_BATCHES_OF = """
SELECT DISTINCT (payload ->> 'batch')::uuid AS id FROM all_jobs WHERE id = ANY ($1::uuid[])
"""

# What another pipeline converted has an age of its own there.
_EXPIRE_FILES = """
UPDATE batch_files SET status = 'expired', result_key = NULL, extractor = NULL
 WHERE job_id = ANY ($1::uuid[]) AND status = 'complete'
"""

_EXPIRE = """
WITH expired AS (
    UPDATE batches SET status = 'expired', changed = pg_current_xact_id(), changed_at = now()
     WHERE id = ANY ($1::uuid[]) AND status IN ('complete', 'complete_with_errors')
    RETURNING id, tenant, owner
)
SELECT id, tenant, owner, waybill_tell(owner) FROM expired
"""

# The job that has the batch's id goes last of all, and the batch with it: not while a later run of it is younger.
_KEEPS = """
SELECT batches.id
  FROM unnest($1::uuid[], $2::timestamptz[]) AS asked (job_id, until)
  JOIN batches ON batches.id = asked.job_id
 WHERE status IN ('queued', 'processing') OR source_deleted_at IS NULL OR finished_at > until
"""

_OWNED = "SELECT job_id FROM job_retention WHERE job_id = ANY ($1::uuid[]) AND kind = ANY ($2::text[])"

_NAMED = """
SELECT listed.key
  FROM unnest($1::uuid[], $2::text[]) AS listed (job_id, key)
  JOIN batches ON batches.id = listed.job_id AND source_key = listed.key AND source_deleted_at IS NULL
"""

_EXPECTED = """
SELECT id, source_key, false FROM batches WHERE id = ANY ($1::uuid[]) AND source_deleted_at IS NULL ORDER BY id
"""


class ExpiredBatch(NamedTuple):
    id: uuid.UUID
    tenant: str
    owner: str


async def due(connection: Connection, job_ids: JobIds, days: float, kinds: Sequence[str], rule: str) -> list[uuid.UUID]:
    """Jobs of these kinds whose batch ended so long ago."""
    return [row["job_id"] for row in await connection.fetch(_DUE, job_ids, days, list(kinds), rule)]


async def remove_sources(connection: Connection, job_ids: JobIds) -> Mapping[str, int]:
    """Remove the files that these jobs unpacked."""
    found = [row["id"] for row in await connection.fetch(_BATCHES_OF, job_ids)]
    await connection.execute(_FORGET_SOURCES, found)
    files, size = await remove_artefacts(connection, job_ids)
    return {"batch_files": files, "bytes": size}


async def remove_results(connection: Connection, job_ids: JobIds) -> tuple[Mapping[str, int], list[ExpiredBatch]]:
    """Remove what these jobs extracted; the batches that expired with it."""
    found = [row["id"] for row in await connection.fetch(_BATCHES_OF, job_ids)]
    await connection.execute(_EXPIRE_FILES, job_ids)
    await enrichments.forget_extracted(connection, found)
    await recount(connection, found)
    expired = [ExpiredBatch(row["id"], row["tenant"], row["owner"]) for row in await connection.fetch(_EXPIRE, found)]
    files, size = await remove_artefacts(connection, job_ids)
    return {"batch_results": files, "bytes": size, "expired": len(expired)}, expired


async def with_zip(connection: Connection, page: Sequence[object]) -> list[uuid.UUID]:
    return [row["job_id"] for row in await connection.fetch(_WITH_ZIP, *page)]


async def zips_due(connection: Connection, job_ids: JobIds, days: float) -> list[uuid.UUID]:
    return [row["job_id"] for row in await connection.fetch(_ZIPS_DUE, job_ids, days)]


async def remove_zips(connection: Connection, job_ids: JobIds, _days: float) -> Mapping[str, int]:
    row = await connection.fetchrow(_REMOVE_ZIPS, job_ids)
    assert row is not None  # noqa: S101 - aggregates always answer
    return {"batch_files": row["zips"], "bytes": row["bytes"]}


async def keeps_job(connection: Connection, job_ids: JobIds, until: Sequence[datetime]) -> set[uuid.UUID]:
    """A batch that is being worked, still has its ZIP, or ended later than its first run."""
    return {row["id"] for row in await connection.fetch(_KEEPS, job_ids, until)}


async def owned(connection: Connection, job_ids: JobIds, kinds: Sequence[str]) -> set[uuid.UUID]:
    return {row["job_id"] for row in await connection.fetch(_OWNED, job_ids, list(kinds))}


async def named(connection: Connection, listed: Sequence[StoredObject]) -> set[str]:
    rows = await connection.fetch(_NAMED, [one.job_id for one in listed], [one.key for one in listed])
    return {row["key"] for row in rows}


async def expected(connection: Connection, job_ids: JobIds) -> Sequence[NamedObject]:
    return [NamedObject(*row) for row in await connection.fetch(_EXPECTED, job_ids)]


async def mark(_connection: Connection, _seen: Sequence[NamedObject]) -> None:
    """A ZIP that is missing shows when its job runs, and what became of artefacts is the engine's to note."""
