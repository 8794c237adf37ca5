"""What the janitor asks about conversions: what is past its age, and which stored objects rows name.

An age counts from the job's end, or from when the same document was last uploaded again (`listed_at`), or from when a
person approved the result. What is kept
whatever its age is the engine's to say (the view `job_retention`).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import asyncpg

from waybill.retention import IdRange, NamedObject, StoredObject
from waybill_engine.retention import remove_artefacts

if TYPE_CHECKING:
    from waybill.db.database import Connection

JobIds = Sequence[uuid.UUID]

_WITH_DOCUMENT = """
SELECT job_id FROM conversions
 WHERE upload_deleted_at IS NULL AND job_id > $1 AND job_id <= $2
 ORDER BY job_id LIMIT $3
"""

_DOCUMENTS_DUE = """
SELECT conversions.job_id
  FROM conversions
  JOIN job_retention ON job_retention.job_id = conversions.job_id
  LEFT JOIN retention_ages ON retention_ages.tenant = job_retention.tenant AND rule = 'documents'
 WHERE conversions.job_id = ANY ($1::uuid[]) AND upload_deleted_at IS NULL AND NOT kept
   AND GREATEST(finished_at, listed_at, approved_at) <= now() - COALESCE(days, $2) * interval '1 day'
   AND status <> 'needs_review'
"""

_REMOVE_DOCUMENTS = """
WITH removed AS (
    UPDATE conversions SET upload_deleted_at = now(), changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = ANY ($1::uuid[]) AND upload_deleted_at IS NULL
    RETURNING owner, bytes, upload_borrowed
), told AS (
    SELECT count(waybill_tell(owner)) FROM (SELECT DISTINCT owner FROM removed) AS owners
)
SELECT count(*) FILTER (WHERE NOT upload_borrowed) AS documents,
       COALESCE(sum(bytes) FILTER (WHERE NOT upload_borrowed), 0)::bigint AS bytes,
       count(*) FILTER (WHERE upload_borrowed) AS let_go
  FROM removed, told
"""

# Only what convert published: other pipelines decide for themselves how long their artefacts are worth keeping. A
# worker of release 0.1.0 makes no row for a job that was enqueued by its name, and the result goes all the same.
_RESULTS_DUE = """
SELECT job_retention.job_id
  FROM job_retention
  LEFT JOIN conversions ON conversions.job_id = job_retention.job_id
  LEFT JOIN retention_ages ON retention_ages.tenant = job_retention.tenant AND rule = 'results'
 WHERE job_retention.job_id = ANY ($1::uuid[]) AND job_retention.kind = 'convert_pdf' AND NOT kept
   AND GREATEST(finished_at, listed_at, approved_at) <= now() - COALESCE(days, $2) * interval '1 day'
"""

_DOWNLOADED = """
SELECT job_id FROM conversions
 WHERE downloaded_at IS NOT NULL AND status = 'complete' AND job_id > $1 AND job_id <= $2
 ORDER BY job_id LIMIT $3
"""

# Never at once: a download that broke off can be repeated.
_DOWNLOADS_DUE = """
SELECT conversions.job_id
  FROM conversions
  JOIN job_retention ON job_retention.job_id = conversions.job_id
  LEFT JOIN retention_ages ON retention_ages.tenant = job_retention.tenant AND rule = 'downloads'
 WHERE conversions.job_id = ANY ($1::uuid[]) AND status = 'complete' AND NOT kept
   AND downloaded_at <= now() - GREATEST(COALESCE(days, $2) * interval '1 day', interval '15 minutes')
"""

_REMOVE_REVISIONS = """
WITH removed AS (
    DELETE FROM revisions WHERE job_id = ANY ($1::uuid[]) RETURNING xml_bytes + record_bytes AS bytes
)
SELECT count(*) AS revisions, COALESCE(sum(bytes), 0)::bigint AS bytes FROM removed
"""

_EXPIRE = """
UPDATE conversions SET status = 'expired', changed = pg_current_xact_id(), changed_at = now()
 WHERE job_id = ANY ($1::uuid[]) AND status IN ('complete', 'needs_review')
RETURNING job_id, tenant, owner
"""

_KEEPS = """
SELECT conversions.job_id
  FROM unnest($1::uuid[], $2::timestamptz[]) AS asked (job_id, until)
  JOIN conversions ON conversions.job_id = asked.job_id
 WHERE upload_deleted_at IS NULL OR GREATEST(listed_at, approved_at) > until
"""

# By the kind: a job that ended before it ever ran may have no row, but a document that somebody stored for it.
_OWNED = "SELECT job_id FROM job_retention WHERE job_id = ANY ($1::uuid[]) AND kind = 'convert_pdf'"

# Pictures of pages are kept as long as the document they show. A document that is borrowed lies where its owner put it;
# nobody may take it for an orphan as long as we need it.
_NAMED = """
SELECT listed.key
  FROM unnest($1::uuid[], $2::text[]) AS listed (job_id, key)
 WHERE EXISTS (SELECT FROM conversions
                WHERE conversions.job_id = listed.job_id AND upload_deleted_at IS NULL
                  AND (upload_key = listed.key OR listed.key LIKE 'pages/%'))
    OR EXISTS (SELECT FROM conversions
                WHERE upload_borrowed AND upload_deleted_at IS NULL AND upload_key = listed.key)
    OR EXISTS (SELECT FROM revisions
                WHERE revisions.job_id = listed.job_id AND listed.key IN (xml_key, record_key))
    OR EXISTS (SELECT FROM mapping_samples
                WHERE mapping_samples.id = listed.job_id AND storage_key = listed.key)
"""

_EXPECTED = """
SELECT job_id, upload_key, upload_missing_at IS NOT NULL FROM conversions
 WHERE job_id = ANY ($1::uuid[]) AND upload_deleted_at IS NULL
 ORDER BY job_id
"""

# Only what is still named: a row that let go of its object meanwhile is right, and the object's absence too.
_MARK_DOCUMENTS = """
WITH marked AS (
    UPDATE conversions
       SET upload_missing_at = CASE WHEN missing THEN now() END, changed = pg_current_xact_id(), changed_at = now()
      FROM unnest($1::uuid[], $2::text[], $3::bool[]) AS seen (job_id, key, missing)
     WHERE conversions.job_id = seen.job_id AND upload_key = key AND upload_deleted_at IS NULL
       AND (upload_missing_at IS NOT NULL) <> missing
    RETURNING conversions.owner
)
SELECT count(waybill_tell(owner)) FROM (SELECT DISTINCT owner FROM marked) AS owners
"""

# A result that is missing shows as expired, so that its owner is told to upload again. In a statement of its own: a
# conversion has one row and may have been changed by the first.
_SHOW_RESULTS = """
WITH shown AS (
    UPDATE conversions
       SET status = CASE WHEN missing_at IS NOT NULL THEN 'expired'
                         WHEN doubts IS NOT NULL AND approved_at IS NULL THEN 'needs_review'
                         ELSE 'complete' END,
           changed = pg_current_xact_id(), changed_at = now()
      FROM job_artefacts
     WHERE conversions.job_id = ANY ($1::uuid[]) AND status IN ('complete', 'needs_review', 'expired')
       AND deleted_at IS NULL
       AND job_artefacts.job_id = conversions.job_id AND name = 'xml' AND storage_key = ANY ($2::text[])
       AND (status = 'expired') <> (missing_at IS NOT NULL)
    RETURNING owner
)
SELECT count(waybill_tell(owner)) FROM (SELECT DISTINCT owner FROM shown) AS owners
"""

_TOMBSTONES = """
SELECT job_id, deleted_at <= now() - $3::float8 * interval '1 day'
       AND NOT EXISTS (SELECT FROM tenants WHERE tenants.name = page.tenant AND hold_at IS NOT NULL) AS due
  FROM (SELECT job_id, deleted_at, tenant FROM conversions
         WHERE deleted_at IS NOT NULL AND job_id > $1
         ORDER BY job_id LIMIT $2) AS page
 ORDER BY job_id
"""

_REMOVE_TOMBSTONES = """
WITH removed AS (
    DELETE FROM conversions
     WHERE job_id = ANY ($1::uuid[]) AND deleted_at <= now() - $2::float8 * interval '1 day'
       AND NOT EXISTS (SELECT FROM tenants WHERE tenants.name = conversions.tenant AND hold_at IS NOT NULL)
    RETURNING 1
)
SELECT count(*) FROM removed
"""


async def with_document(connection: Connection, page: IdRange) -> JobIds:
    return _ids(await connection.fetch(_WITH_DOCUMENT, *page))


async def documents_due(connection: Connection, job_ids: JobIds, days: float) -> JobIds:
    return _ids(await connection.fetch(_DOCUMENTS_DUE, job_ids, days))


async def remove_documents(connection: Connection, job_ids: JobIds, _days: float) -> Mapping[str, int]:
    """The rows let go of the documents. A trigger makes the files garbage, except for those that were borrowed."""
    row = await connection.fetchrow(_REMOVE_DOCUMENTS, job_ids)
    assert row is not None  # noqa: S101 - aggregates always answer
    return dict(row)


async def results_due(connection: Connection, job_ids: JobIds, days: float) -> JobIds:
    return _ids(await connection.fetch(_RESULTS_DUE, job_ids, days))


async def downloaded(connection: Connection, page: IdRange) -> JobIds:
    return _ids(await connection.fetch(_DOWNLOADED, *page))


async def downloads_due(connection: Connection, job_ids: JobIds, days: float) -> JobIds:
    return _ids(await connection.fetch(_DOWNLOADS_DUE, job_ids, days))


class ExpiredResult(NamedTuple):
    """A conversion that lost its result just now."""

    job_id: uuid.UUID
    tenant: str
    owner: str


class RemovedResults(NamedTuple):
    files: int
    bytes: int
    expired: Sequence[ExpiredResult]


async def remove_results(connection: Connection, job_ids: JobIds) -> RemovedResults:
    """Results go with their revisions; the jobs stay listed as expired. The caller tells their owners."""
    files, size = await remove_artefacts(connection, job_ids)
    corrections = await connection.fetchrow(_REMOVE_REVISIONS, job_ids)
    assert corrections is not None  # noqa: S101 - aggregates always answer
    expired = [ExpiredResult(*row) for row in await connection.fetch(_EXPIRE, job_ids)]
    return RemovedResults(files + corrections["revisions"], size + corrections["bytes"], expired)


async def keeps_job(connection: Connection, job_ids: JobIds, until: Sequence[datetime]) -> set[uuid.UUID]:
    """Jobs whose document is still kept, or was uploaded again since."""
    return set(_ids(await connection.fetch(_KEEPS, job_ids, until)))


async def owned(connection: Connection, job_ids: JobIds) -> set[uuid.UUID]:
    return set(_ids(await connection.fetch(_OWNED, job_ids)))


async def named(connection: Connection, listed: Sequence[StoredObject]) -> set[str]:
    rows = await connection.fetch(_NAMED, [one.job_id for one in listed], [one.key for one in listed])
    return {row["key"] for row in rows}


async def expected(connection: Connection, job_ids: JobIds) -> Sequence[NamedObject]:
    return [NamedObject(*row) for row in await connection.fetch(_EXPECTED, job_ids)]


async def mark(connection: Connection, seen: Sequence[NamedObject]) -> None:
    job_ids, keys, missing = map(list, zip(*seen, strict=True))
    await connection.execute(_MARK_DOCUMENTS, job_ids, keys, missing)
    await connection.execute(_SHOW_RESULTS, job_ids, keys)


class Tombstone(NamedTuple):
    job_id: uuid.UUID
    due: bool


async def tombstones(connection: Connection, after: uuid.UUID, limit: int, days: float) -> list[Tombstone]:
    """What is left of deleted conversions, in the order of their ids."""
    return [Tombstone(*row) for row in await connection.fetch(_TOMBSTONES, after, limit, days)]


async def remove_tombstones(connection: Connection, job_ids: JobIds, days: float) -> int:
    return int(await connection.fetchval(_REMOVE_TOMBSTONES, job_ids, days))


def _ids(rows: Sequence[asyncpg.Record]) -> list[uuid.UUID]:
    return [row["job_id"] for row in rows]
