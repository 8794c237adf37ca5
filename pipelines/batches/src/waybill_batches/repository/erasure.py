"""Forgetting batches for good: one that its owner deletes, an owner's, a tenant's."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from waybill import audit
from waybill.retention.holds import let_holds_wait, refuse_if_held
from waybill_engine import retention
from waybill_engine.erasure import JobPage

if TYPE_CHECKING:
    from waybill.db.database import Connection

# Its jobs are known by their files, by the parents of its runs, and by the payload of those that unpack and sum up.
_JOBS_OF_BATCH = """
SELECT id
  FROM (SELECT job_id AS id FROM batch_files WHERE batch_id = $1 AND job_id IS NOT NULL
         UNION
        SELECT jobs.id FROM batches JOIN all_jobs AS jobs ON jobs.parent_id = ANY (all_runs) WHERE batches.id = $1
         UNION
        SELECT unnest(all_runs) FROM batches WHERE batches.id = $1) AS known
 WHERE id <> $1
   AND EXISTS (SELECT FROM all_jobs WHERE all_jobs.id = known.id
                AND all_jobs.state IN ('succeeded', 'failed', 'dead_letter', 'cancelled'))
 LIMIT $2
"""

_ANY_LEFT = """
SELECT EXISTS (
    SELECT FROM (SELECT job_id AS id FROM batch_files WHERE batch_id = $1 AND job_id IS NOT NULL
                  UNION
                 SELECT jobs.id FROM batches JOIN all_jobs AS jobs ON jobs.parent_id = ANY (all_runs)
                  WHERE batches.id = $1
                  UNION
                 SELECT unnest(all_runs) FROM batches WHERE batches.id = $1) AS known
      JOIN all_jobs ON all_jobs.id = known.id
     WHERE known.id <> $1)
"""

_DELETE_BATCH = "DELETE FROM batches WHERE id = $1 RETURNING owner"

_TELL = "SELECT waybill_tell($1)"

# The batch comes last: as long as it is there, its jobs are found.
_OF_OWNER = """
SELECT id FROM batches WHERE owner = $1 AND id > $2 ORDER BY id LIMIT 1
"""

_FAMILY = """
SELECT id
  FROM (SELECT job_id AS id FROM batch_files WHERE batch_id = $1 AND job_id IS NOT NULL
         UNION
        SELECT jobs.id FROM batches JOIN all_jobs AS jobs ON jobs.parent_id = ANY (all_runs) WHERE batches.id = $1
         UNION
        SELECT unnest(all_runs) FROM batches WHERE batches.id = $1) AS known
 WHERE id <> $1 AND id > $2
 ORDER BY id
 LIMIT $3
"""

_REMOVE = """
WITH removed AS (
    DELETE FROM batches WHERE id = ANY ($1::uuid[]) RETURNING owner, source_deleted_at
), told AS (
    SELECT count(waybill_tell(owner)) FROM (SELECT DISTINCT owner FROM removed) AS owners
)
SELECT count(*) FILTER (WHERE source_deleted_at IS NULL) FROM removed, told
"""

_REST = "DELETE FROM batches WHERE id = ANY (ARRAY(SELECT id FROM batches WHERE tenant = $1 LIMIT $2)) RETURNING id"

_NONE = uuid.UUID(int=0)


async def ended_jobs_of_batch(connection: Connection, batch_id: uuid.UUID, limit: int) -> list[uuid.UUID]:
    """Some of the batch's ended jobs, without the one that has its id."""
    return [row["id"] for row in await connection.fetch(_JOBS_OF_BATCH, batch_id, limit)]


async def any_left(connection: Connection, batch_id: uuid.UUID) -> bool:
    """Whether the batch has jobs besides the one that has its id."""
    return bool(await connection.fetchval(_ANY_LEFT, batch_id))


async def delete_jobs(connection: Connection, tenant: str, job_ids: Sequence[uuid.UUID]) -> None:
    """Delete jobs that the caller has locked, with their history and their stored files."""
    await let_holds_wait(connection)
    await refuse_if_held(connection, tenant)
    await retention.delete(connection, job_ids)


async def delete_batch(connection: Connection, tenant: str, batch_id: uuid.UUID) -> None:
    """Delete the batch itself, and the job that has its id."""
    await let_holds_wait(connection)
    await refuse_if_held(connection, tenant)
    row = await connection.fetchrow(_DELETE_BATCH, batch_id)
    if row is None:
        return
    await retention.delete(connection, await retention.lock(connection, [batch_id]))
    await audit.record(connection, "batch.deleted", f"job:{batch_id}", tenant=tenant)
    await connection.execute(_TELL, row["owner"])


async def jobs_of_owner(connection: Connection, owner: str, cursor: str | None, limit: int) -> JobPage:
    """The jobs of one batch after the other. The cursor is a batch, and the last of its jobs that was named."""
    batch_text, _, job_text = (cursor or "").partition(".")
    batch_id = uuid.UUID(batch_text) if batch_text else _NONE
    if job_text:
        rows = await connection.fetch(_FAMILY, batch_id, uuid.UUID(job_text), limit)
        if rows:
            return JobPage([row["id"] for row in rows], f"{batch_id}.{rows[-1]['id']}")
        # Those that still run could not go, and are found by their batch only.
        return JobPage([] if await any_left(connection, batch_id) else [batch_id], str(batch_id))
    found = await connection.fetchval(_OF_OWNER, owner, batch_id)
    return JobPage([], f"{found}.{_NONE}" if found is not None else None)


async def remove(connection: Connection, job_ids: Sequence[uuid.UUID]) -> int:
    """How many ZIPs went with them."""
    return int(await connection.fetchval(_REMOVE, job_ids))


async def remove_rest(connection: Connection, tenant: str, limit: int) -> list[uuid.UUID]:
    """Batches whose job is gone already."""
    return [row["id"] for row in await connection.fetch(_REST, tenant, limit)]
