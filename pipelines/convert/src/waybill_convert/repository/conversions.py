"""All SQL on `conversions`. Every statement that reads for somebody names the owner; there is no way around it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill_convert.cursors import Place, Since
from waybill_convert.estimates import Noted
from waybill_convert.kinds import CONVERT_PDF
from waybill_convert.models import Upload
from waybill_convert.status import REUSABLE, Status

if TYPE_CHECKING:
    from waybill.db.database import Connection

_ONE = """
SELECT *, extract(epoch FROM now() - started_at)::float8 AS running_for
  FROM conversion_details
 WHERE job_id = $1 AND deleted_at IS NULL
"""

# Each of these reads one index in order and stops at the limit; then each row is completed by primary keys. LATERAL and
# OFFSET leave the planner no other way round, whatever it believes about the size of the engine's table.
_PAGE = """
SELECT details.*, extract(epoch FROM now() - started_at)::float8 AS running_for
  FROM (SELECT job_id, listed_at FROM conversions
         WHERE owner = $1 AND deleted_at IS NULL AND (listed_at, job_id) < ($2, $3)
         ORDER BY listed_at DESC, job_id DESC
         LIMIT $4) AS page,
       LATERAL (SELECT * FROM conversion_details WHERE conversion_details.job_id = page.job_id OFFSET 0) AS details
 ORDER BY page.listed_at DESC, page.job_id DESC
"""

_PAGE_FILTERED = """
SELECT details.*, extract(epoch FROM now() - started_at)::float8 AS running_for
  FROM (SELECT found.job_id, found.listed_at
          FROM unnest($5::text[]) AS wanted (status), LATERAL (
                   SELECT job_id, listed_at FROM conversions
                    WHERE owner = $1 AND deleted_at IS NULL AND conversions.status = wanted.status
                      AND (listed_at, job_id) < ($2, $3)
                      AND ($6::text IS NULL OR original_name ILIKE $6 OR job_id::text LIKE $7)
                    ORDER BY listed_at DESC, job_id DESC
                    LIMIT $4
               ) AS found
         ORDER BY found.listed_at DESC, found.job_id DESC
         LIMIT $4) AS page,
       LATERAL (SELECT * FROM conversion_details WHERE conversion_details.job_id = page.job_id OFFSET 0) AS details
 ORDER BY page.listed_at DESC, page.job_id DESC
"""

_CHANGED = """
SELECT details.*, extract(epoch FROM now() - started_at)::float8 AS running_for
  FROM (SELECT job_id, changed FROM conversions
         WHERE owner = $1 AND (changed, job_id) >= ($2::text::xid8, $3)
         ORDER BY changed, job_id
         LIMIT $4) AS seen,
       LATERAL (SELECT * FROM conversion_details WHERE conversion_details.job_id = seen.job_id OFFSET 0) AS details
 WHERE details.deleted_at IS NULL
 ORDER BY seen.changed, seen.job_id
"""

# Without their jobs, which are gone.
_GONE = """
SELECT job_id, changed::text::bigint AS changed, deleted_at IS NOT NULL AS deleted
  FROM (SELECT * FROM conversions
         WHERE owner = $1 AND (changed, job_id) >= ($2::text::xid8, $3)
         ORDER BY changed, job_id
         LIMIT $4) AS seen
"""

# By the clock, for who has no cursor yet. A minute early: a transaction's time is when it began, not when it became
# visible, and none may be idle for longer (see `Database`).
_FIRST_SINCE = """
SELECT COALESCE(min(changed::text::bigint), 0) FROM conversions
 WHERE owner = $1 AND changed_at >= $2::timestamptz - interval '1 minute'
"""

# Read before the rows themselves: whatever commits in between is then seen twice, never missed. Of each status no more
# entries of the index are walked than asked for, however many there are.
_OVERVIEW = """
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest,
       (SELECT jsonb_object_agg(wanted.status, (
                   SELECT count(*) FROM (
                       SELECT FROM conversions
                        WHERE owner = $1 AND deleted_at IS NULL AND conversions.status = wanted.status
                        LIMIT $3) AS first_ones))
          FROM unnest($2::text[]) AS wanted (status)) AS counts
"""

_COUNT = """
SELECT status, count(*) FROM conversions
 WHERE owner = $1 AND deleted_at IS NULL AND status = ANY ($2::text[])
 GROUP BY status
"""

_LOCK_SAME = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"

# The status is looked at last, or the planner might go through everything that has it.
_SAME = """
SELECT job_id
  FROM (SELECT job_id, status FROM conversions
         WHERE owner = $1 AND sha256 = $2 AND mapping = $3 AND bytes = $4 AND deleted_at IS NULL
        OFFSET 0) AS same
 WHERE status = ANY ($5::text[])
 ORDER BY job_id DESC
 LIMIT 1
"""

_DOCUMENT = """
SELECT job_id, upload_key AS key, original_name, bytes, sha256, mapping FROM conversions
 WHERE job_id = $1 AND deleted_at IS NULL
"""

# Another job that makes this one needless: under way, or later and done. An earlier one that is done was not enough for
# whoever had it converted again.
_TWIN = """
SELECT job_id
  FROM (SELECT job_id, status FROM conversions
         WHERE owner = $1 AND sha256 = $2 AND mapping = $3 AND bytes = $4 AND deleted_at IS NULL
        OFFSET 0) AS same
 WHERE job_id <> $5 AND (status IN ('queued', 'processing') OR (status = 'complete' AND job_id > $5))
 ORDER BY job_id DESC
 LIMIT 1
"""

# Jobs before conversions, and in the order of their ids: as whoever ends jobs locks them.
_LOCK_OWNED = """
SELECT id FROM jobs
 WHERE id IN (SELECT job_id FROM conversions WHERE owner = $1 AND deleted_at IS NULL)
 ORDER BY id
   FOR UPDATE
"""

_ADOPT = """
WITH adopted AS (
    UPDATE conversions SET owner = $2, changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = ANY ($3::uuid[]) AND owner = $1
    RETURNING job_id
), moved AS (
    UPDATE jobs SET owner = $2 FROM adopted WHERE jobs.id = adopted.job_id
)
SELECT count(*), pg_notify('waybill_changes', $1), pg_notify('waybill_changes', $2) FROM adopted
"""

# Held until the transaction ends: a job that is given out again cannot be deleted or cancelled meanwhile.
_STILL_THERE = """
SELECT id FROM jobs
 WHERE id = $1 AND cancel_requested_at IS NULL
   AND (state IN ('scheduled', 'queued', 'running', 'succeeded')
        OR EXISTS (SELECT FROM conversions WHERE job_id = $1 AND revision > 0))
   FOR SHARE
"""

# Looked at once more under that lock: the janitor may have let it expire meanwhile, which does not touch the job.
_STILL_GOOD = "SELECT job_id FROM conversions WHERE job_id = $1 AND status = ANY ($2::text[])"

_INSERT = """
WITH told AS (SELECT pg_notify('waybill_changes', $3))
INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, upload_key, status, listed_at,
                         changed, changed_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, 'queued', now(), pg_current_xact_id(), now() FROM told
"""

_REUSE = """
WITH reused AS (
    UPDATE conversions
       SET listed_at = now(), reused_at = now(), downloaded_at = NULL,
           changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = $1
    RETURNING owner
)
SELECT pg_notify('waybill_changes', owner) FROM reused
"""

_BREAKER = "SELECT state, open_until, reason FROM breakers WHERE name = $1 AND state <> 'closed'"

_READY = """
SELECT job_id FROM conversions
 WHERE owner = $1 AND status = 'complete' AND deleted_at IS NULL
 ORDER BY listed_at DESC, job_id DESC
"""

_XML = """
SELECT conversions.job_id, conversions.original_name,
       COALESCE(revisions.xml_key, job_artefacts.storage_key) AS storage_key,
       COALESCE(revisions.xml_bytes, job_artefacts.bytes) AS bytes
  FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted (job_id, place)
  JOIN conversions ON conversions.job_id = wanted.job_id
  LEFT JOIN revisions ON revisions.job_id = conversions.job_id AND revisions.number = conversions.revision
  LEFT JOIN job_artefacts ON job_artefacts.job_id = conversions.job_id AND job_artefacts.name = 'xml'
 WHERE conversions.owner = $1 AND conversions.status = 'complete' AND conversions.deleted_at IS NULL
   AND COALESCE(revisions.xml_key, job_artefacts.storage_key) IS NOT NULL
 ORDER BY wanted.place
"""

_DOWNLOADED = "UPDATE conversions SET downloaded_at = now() WHERE job_id = ANY ($1::uuid[]) AND downloaded_at IS NULL"

# The newest few thousand, whatever they are, so that a long backlog cannot make it slow.
_SAMPLES = """
SELECT recent.bytes, extract(epoch FROM jobs.finished_at - jobs.started_at)::float8 AS seconds
  FROM (SELECT * FROM conversions ORDER BY job_id DESC LIMIT 2000) AS recent
  JOIN jobs ON jobs.id = recent.job_id
 WHERE recent.status IN ('complete', 'expired') AND jobs.started_at IS NOT NULL AND jobs.finished_at > jobs.started_at
 ORDER BY recent.job_id DESC
 LIMIT $1
"""

_NOTED = "SELECT size, samples, low, median, high FROM durations WHERE kind = $1"

_LOCK_JOB = "SELECT state FROM jobs WHERE id = $1 FOR UPDATE"

# With the job goes all that belongs to it; the trigger of migration 0006 turns the conversion into a tombstone.
_DELETE = """
WITH events AS (
    DELETE FROM job_events WHERE job_id = $1
), artefacts AS (
    DELETE FROM job_artefacts WHERE job_id = $1 RETURNING storage_key
), corrections AS (
    DELETE FROM revisions WHERE job_id = $1 RETURNING xml_key, record_key
), job AS (
    DELETE FROM jobs WHERE id = $1
)
SELECT storage_key FROM artefacts
 UNION ALL
SELECT unnest(ARRAY[xml_key, record_key]) FROM corrections
"""

# The engine's trigger would call an expired conversion complete again, so the change is told here.
_PIN = """
WITH pinned AS (
    UPDATE jobs SET pinned_at = CASE WHEN $2 THEN now() END WHERE id = $1 AND (pinned_at IS NOT NULL) <> $2 RETURNING id
), changed AS (
    UPDATE conversions SET changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = ANY (ARRAY(SELECT id FROM pinned))
    RETURNING owner
)
SELECT pg_notify('waybill_changes', owner) FROM changed
"""

_NEWEST = datetime.max  # noqa: DTZ901 - how the driver spells Postgres's infinity
_LAST_ID = uuid.UUID(int=2**128 - 1)
_FIRST_ID = uuid.UUID(int=0)


async def get(connection: Connection, job_id: uuid.UUID) -> Any | None:
    """One conversion, whoever's it is: the caller must look at its `owner`."""
    return await connection.fetchrow(_ONE, job_id)


async def page(
    connection: Connection,
    owner: str,
    *,
    statuses: Sequence[Status] = (),
    words: str | None = None,
    after: Place | None = None,
    limit: int,
) -> list[Any]:
    """Newest first. `words` are looked for in names, or are the beginning of an id."""
    listed_at, job_id = (after.listed_at, after.job_id) if after else (_NEWEST, _LAST_ID)
    if not statuses and not words:
        return await connection.fetch(_PAGE, owner, listed_at, job_id, limit)
    escaped = _escape(words) if words else None
    return await connection.fetch(
        _PAGE_FILTERED,
        owner,
        listed_at,
        job_id,
        limit,
        list(statuses or Status),
        f"%{escaped}%" if escaped else None,
        f"{escaped.lower()}%" if escaped else None,
    )


async def changed(
    connection: Connection, owner: str, since: Since, limit: int
) -> tuple[list[Any], list[uuid.UUID], Since | None]:
    """What changed, what is gone, and where to go on if there is more than `limit`."""
    after = _FIRST_ID if since.after is None else uuid.UUID(int=min(since.after.int + 1, 2**128 - 1))
    seen = await connection.fetch(_GONE, owner, str(since.xid), after, limit)
    gone = [row["job_id"] for row in seen if row["deleted"]]
    rows = await connection.fetch(_CHANGED, owner, str(since.xid), after, limit) if len(gone) < len(seen) else []
    more = Since(seen[-1]["changed"], since.floor, seen[-1]["job_id"]) if len(seen) == limit else None
    return rows, gone, more


async def first_since(connection: Connection, owner: str, moment: datetime) -> int:
    """The transaction with which changes since that moment begin; 0 if there are none."""
    return int(await connection.fetchval(_FIRST_SINCE, owner, moment))


async def overview(connection: Connection, owner: str, most: int) -> tuple[int, dict[Status, int]]:
    """The oldest transaction that is still under way (all earlier ones can be seen), and counts by status.

    No status is counted beyond `most`.
    """
    row = await connection.fetchrow(_OVERVIEW, owner, list(Status), most)
    assert row is not None  # noqa: S101 - it has no condition
    found = json.loads(row["counts"])
    return row["oldest"], {status: found[status.value] for status in Status}


async def count(connection: Connection, owner: str, statuses: Sequence[Status]) -> dict[Status, int]:
    """All of them, which takes its time where there are many."""
    found = {row["status"]: row["count"] for row in await connection.fetch(_COUNT, owner, list(statuses))}
    return {status: found.get(status.value, 0) for status in statuses}


async def lock_same(connection: Connection, owner: str, upload: Upload) -> None:
    """One at a time for the same document of the same owner, until the transaction ends."""
    await connection.execute(_LOCK_SAME, f"{owner}|{upload.sha256}|{upload.mapping}|{upload.bytes}")


async def find_same(connection: Connection, owner: str, upload: Upload) -> uuid.UUID | None:
    """The owner's job for the same document and mapping, if it is still good for it."""
    found = await connection.fetchval(_SAME, owner, upload.sha256, upload.mapping, upload.bytes, list(REUSABLE))
    held = await connection.fetchval(_STILL_THERE, found) if found is not None else None
    good = await connection.fetchval(_STILL_GOOD, held, list(REUSABLE)) if held is not None else None
    return uuid.UUID(str(good)) if good is not None else None


async def document(connection: Connection, job_id: uuid.UUID) -> Upload | None:
    """A job's document, as it was uploaded."""
    row = await connection.fetchrow(_DOCUMENT, job_id)
    return Upload(**row) if row is not None else None


async def find_twin(connection: Connection, owner: str, upload: Upload) -> uuid.UUID | None:
    """Another job of the owner's for the same document, beside which this one must not run."""
    found = await connection.fetchval(_TWIN, owner, upload.sha256, upload.mapping, upload.bytes, upload.job_id)
    return uuid.UUID(str(found)) if found is not None else None


async def adopt(connection: Connection, owner: str, by: str) -> int:
    """Make everything of one owner another's; how many they are."""
    jobs = [row["id"] for row in await connection.fetch(_LOCK_OWNED, owner)]
    return int(await connection.fetchval(_ADOPT, owner, by, jobs))


async def insert(connection: Connection, tenant: str, owner: str, upload: Upload) -> None:
    await connection.execute(
        _INSERT,
        upload.job_id,
        tenant,
        owner,
        upload.original_name,
        upload.bytes,
        upload.sha256,
        upload.mapping,
        upload.key,
    )


async def reuse(connection: Connection, job_id: uuid.UUID) -> None:
    """Back to the top of the list."""
    await connection.execute(_REUSE, job_id)


async def breaker(connection: Connection, dependency: str) -> Any | None:
    """The dependency's breaker, unless all is well."""
    return await connection.fetchrow(_BREAKER, dependency)


async def ready(connection: Connection, owner: str) -> list[uuid.UUID]:
    """Everything of the owner's that has a result, newest first."""
    return [row["job_id"] for row in await connection.fetch(_READY, owner)]


async def xml_of(connection: Connection, owner: str, job_ids: Sequence[uuid.UUID]) -> list[Any]:
    """The XML of each of these jobs, as it was last corrected, as far as they are the owner's and still there."""
    return await connection.fetch(_XML, owner, list(job_ids))


async def note_downloaded(connection: Connection, job_ids: Sequence[uuid.UUID]) -> None:
    await connection.execute(_DOWNLOADED, list(job_ids))


async def samples(connection: Connection, limit: int) -> list[tuple[int, float]]:
    """Size and duration of recent conversions that went well."""
    return [(row["bytes"], row["seconds"]) for row in await connection.fetch(_SAMPLES, limit)]


async def noted_durations(connection: Connection) -> dict[int, Noted]:
    """What the janitor noted, by the logarithm of the size."""
    return {row[0]: Noted(*row[1:]) for row in await connection.fetch(_NOTED, CONVERT_PDF.name)}


async def lock_job(connection: Connection, job_id: uuid.UUID) -> str | None:
    state = await connection.fetchval(_LOCK_JOB, job_id)
    return str(state) if state is not None else None


async def delete(connection: Connection, job_id: uuid.UUID) -> list[str]:
    """Remove the job and all rows that belong to it; the keys of its stored results and revisions."""
    return [row["storage_key"] for row in await connection.fetch(_DELETE, job_id)]


async def pin(connection: Connection, job_id: uuid.UUID, *, pinned: bool) -> None:
    """Keep it whatever its age, or no longer. Done twice, nothing changes the second time."""
    await connection.execute(_PIN, job_id, pinned)


def _escape(words: str) -> str:
    return words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
