"""The rows of `conversions`: one comes in with an upload or a first run, is reused, handed over, pinned, deleted.

Who may see a row is the caller's to check, by its `owner`.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from waybill import audit
from waybill_convert.models import Upload
from waybill_convert.repository.details import DETAILS
from waybill_convert.status import REUSABLE
from waybill_engine import control, retention
from waybill_engine.job_locks import lock_jobs, share_job

if TYPE_CHECKING:
    from waybill.db.database import Connection

_ONE = f"{DETAILS} WHERE conversions.job_id = $1 AND conversions.deleted_at IS NULL"

_LOCK_SAME = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"

# What is in no list is not given out again: it is there for the family that it belongs to. The status is looked at
# last, or the planner might go through everything that has it.
_SAME = """
SELECT job_id
  FROM (SELECT job_id, status FROM conversions
         WHERE owner = $1 AND sha256 = $2 AND mapping = $3 AND bytes = $4 AND deleted_at IS NULL
           AND listed_at IS NOT NULL AND (mapping_sha256 IS NULL OR $6::text IS NULL OR mapping_sha256 = $6)
           AND loss IS NOT DISTINCT FROM $7
        OFFSET 0) AS same
 WHERE status = ANY ($5::text[])
 ORDER BY job_id DESC
 LIMIT 1
"""

_DOCUMENT = """
SELECT job_id, upload_key AS key, original_name, bytes, sha256, mapping, mapping_sha256, loss FROM conversions
 WHERE job_id = $1 AND deleted_at IS NULL
"""

# Another job that makes this one needless: under way, or later and done. An earlier one that is done was not enough for
# whoever had it converted again. Documents that came without a hash are not known to be the same.
_TWIN = """
SELECT job_id
  FROM (SELECT job_id, status FROM conversions
         WHERE owner = $1 AND sha256 = $2 AND mapping = $3 AND bytes = $4 AND deleted_at IS NULL
           AND listed_at IS NOT NULL AND sha256 <> '' AND loss IS NOT DISTINCT FROM $6
        OFFSET 0) AS same
 WHERE job_id <> $5 AND (status IN ('queued', 'processing')
                           OR (status IN ('complete', 'needs_review') AND job_id > $5))
 ORDER BY job_id DESC
 LIMIT 1
"""

_OWNED = "SELECT job_id FROM conversions WHERE owner = $1 AND deleted_at IS NULL"

_ADOPT = """
WITH adopted AS (
    UPDATE conversions SET owner = $2, changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = ANY ($3::uuid[]) AND owner = $1
    RETURNING job_id
)
SELECT ARRAY(SELECT job_id FROM adopted) AS jobs, waybill_tell($1), waybill_tell($2)
"""

_STILL_GOOD = "SELECT job_id FROM conversions WHERE job_id = $1 AND status = ANY ($2::text[])"

_INSERT = """
WITH told AS (SELECT waybill_tell($3))
INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, upload_key, mapping_sha256,
                         loss, status, listed_at, changed, changed_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'queued', now(), pg_current_xact_id(), now() FROM told
"""

_NAMED_MAPPING = "SELECT tenant, mapping AS name, mapping_sha256 AS sha256, loss FROM conversions WHERE job_id = $1"

_USED_MAPPING = """
SELECT tenant, COALESCE(used_mapping, mapping) AS name,
       CASE WHEN used_mapping IS NULL THEN mapping_sha256 ELSE used_sha256 END AS sha256
  FROM conversions WHERE job_id = $1
"""

_ASK_ANEW = """
UPDATE conversions
   SET mapping = $2, mapping_sha256 = $3, loss = $4, used_mapping = NULL, used_sha256 = NULL, recognition = NULL,
       changed = pg_current_xact_id(), changed_at = now()
 WHERE job_id = $1
"""

_KEEPS_DOCUMENT = "SELECT upload_deleted_at IS NULL FROM conversions WHERE job_id = $1 AND deleted_at IS NULL"

# Its job runs, and the caller has locked it.
_INSERT_RUNNING = """
WITH made AS (
    INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, upload_key, upload_borrowed,
                             mapping_sha256, loss, status, listed_at, changed, changed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $11, $12, 'processing', $10, pg_current_xact_id(), now())
        ON CONFLICT DO NOTHING
    RETURNING owner, listed_at
)
SELECT waybill_tell(owner) FROM made WHERE listed_at IS NOT NULL
"""

_REUSE = """
WITH reused AS (
    UPDATE conversions
       SET listed_at = now(), reused_at = now(), downloaded_at = NULL,
           changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = $1
    RETURNING owner
)
SELECT waybill_tell(owner) FROM reused
"""

_REMOVE_REVISIONS = "DELETE FROM revisions WHERE job_id = $1 RETURNING xml_key, record_key"

# The trigger on `jobs` would call an expired conversion complete again, so a pin is told here.
_TELL = """
WITH changed AS (
    UPDATE conversions SET changed = pg_current_xact_id(), changed_at = now() WHERE job_id = $1 RETURNING owner
)
SELECT waybill_tell(owner) FROM changed
"""


async def get(connection: Connection, job_id: uuid.UUID) -> Any | None:
    """One conversion, whoever's it is: the caller must look at its `owner`."""
    return await connection.fetchrow(_ONE, job_id)


async def get_own(connection: Connection, owner: str, job_id: uuid.UUID) -> Any | None:
    """One conversion of an owner. That somebody asked for another's is noted."""
    row = await get(connection, job_id)
    if row is not None and row["owner"] != owner:
        audit.refuse("job.foreign", f"job:{job_id}", tenant=row["tenant"])
        return None
    return row


async def lock_same(connection: Connection, owner: str, upload: Upload) -> None:
    """One at a time for the same document of the same owner, until the transaction ends."""
    await connection.execute(_LOCK_SAME, f"{owner}|{upload.sha256}|{upload.mapping}|{upload.bytes}")


async def find_same(connection: Connection, owner: str, upload: Upload) -> uuid.UUID | None:
    """The owner's job for the same document, mapping and loss, if it is still good for it."""
    found = await connection.fetchval(
        _SAME,
        owner,
        upload.sha256,
        upload.mapping,
        upload.bytes,
        list(REUSABLE),
        upload.mapping_sha256,
        upload.loss,
    )
    # Locked until the transaction ends: a job that is given out again cannot be deleted or cancelled meanwhile.
    job = await share_job(connection, found) if found is not None else None
    if job is None or job.stopping:
        return None
    # Looked at once more under that lock: the job may have ended, or the janitor may have let its result expire.
    good = await connection.fetchval(_STILL_GOOD, found, list(REUSABLE))
    return uuid.UUID(str(good)) if good is not None else None


async def document(connection: Connection, job_id: uuid.UUID) -> Upload | None:
    """A job's document, as it was uploaded."""
    row = await connection.fetchrow(_DOCUMENT, job_id)
    return Upload(**row) if row is not None else None


async def find_twin(connection: Connection, owner: str, upload: Upload) -> uuid.UUID | None:
    """Another job of the owner's for the same document, beside which this one must not run."""
    found = await connection.fetchval(
        _TWIN, owner, upload.sha256, upload.mapping, upload.bytes, upload.job_id, upload.loss
    )
    return uuid.UUID(str(found)) if found is not None else None


async def adopt(connection: Connection, owner: str, by: str) -> int:
    """Make everything of one owner another's; how many they are."""
    # Jobs before conversions, as whoever ends jobs locks them.
    jobs = await lock_jobs(connection, [row["job_id"] for row in await connection.fetch(_OWNED, owner)])
    adopted = await connection.fetchval(_ADOPT, owner, by, jobs)
    await control.hand_over(connection, adopted, by)
    return len(adopted)


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
        upload.mapping_sha256,
        upload.loss,
    )


class NamedMapping(NamedTuple):
    """The mapping that a job named, and the tenant for whom it did."""

    tenant: str
    name: str
    sha256: str | None
    loss: str | None = None
    """What may be lost of an e-invoice; None if the mapping decides."""


async def named_mapping(connection: Connection, job_id: uuid.UUID) -> NamedMapping | None:
    """None if the job has no row yet: those that were uploaded have it from the start."""
    row = await connection.fetchrow(_NAMED_MAPPING, job_id)
    return NamedMapping(**row) if row is not None else None


async def used_mapping(connection: Connection, job_id: uuid.UUID) -> NamedMapping | None:
    """The mapping that a job's record was made by: the one that it named, or the one that its document chose."""
    row = await connection.fetchrow(_USED_MAPPING, job_id)
    return NamedMapping(**row) if row is not None else None


async def ask_anew(connection: Connection, asked: Upload) -> None:
    """Have a locked job's document converted by another mapping, or with another loss, the next time."""
    await connection.execute(_ASK_ANEW, asked.job_id, asked.mapping, asked.mapping_sha256, asked.loss)


async def keeps_document(connection: Connection, job_id: uuid.UUID) -> bool:
    """Whether a job's document should be in the storage: nobody has removed it."""
    return bool(await connection.fetchval(_KEEPS_DOCUMENT, job_id))


async def insert_running(
    connection: Connection, tenant: str, owner: str, upload: Upload, *, borrowed: bool, listed_at: datetime | None
) -> None:
    """Make the row of a job that runs already, and that the caller has locked; with `listed_at` None in no list."""
    await connection.execute(
        _INSERT_RUNNING,
        upload.job_id,
        tenant,
        owner,
        upload.original_name,
        upload.bytes,
        upload.sha256,
        upload.mapping,
        upload.key,
        borrowed,
        listed_at,
        upload.mapping_sha256,
        upload.loss,
    )


async def reuse(connection: Connection, job_id: uuid.UUID) -> None:
    """Back to the top of the list."""
    await connection.execute(_REUSE, job_id)


async def delete(connection: Connection, job_id: uuid.UUID) -> list[str]:
    """Remove a locked job and all rows that belong to it; the keys of its stored results and revisions.

    A trigger turns the conversion itself into a tombstone (migration convert_0001).
    """
    rows = await connection.fetch(_REMOVE_REVISIONS, job_id)
    deleted = await retention.delete(connection, [job_id])
    return [*deleted.keys, *(key for row in rows for key in row)]


async def pin(connection: Connection, job_id: uuid.UUID, *, pinned: bool) -> None:
    """Keep a locked job whatever its age, or no longer. Done twice, nothing changes the second time."""
    if await retention.pin(connection, job_id, pinned=pinned):
        await connection.execute(_TELL, job_id)
