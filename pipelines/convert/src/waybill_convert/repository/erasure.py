"""Forgetting an owner's or a tenant's conversions for good, tombstones included."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from waybill_convert.repository import mappings
from waybill_engine.erasure import JobPage

if TYPE_CHECKING:
    from waybill.db.database import Connection

_OF_OWNER = """
SELECT job_id, changed::text AS changed FROM conversions
 WHERE owner = $1 AND (changed, job_id) > ($2::text::xid8, $3)
 ORDER BY changed, job_id
 LIMIT $4
"""

# Those that are in no list have no transaction that followers would hear of.
_UNLISTED_OF_OWNER = """
SELECT job_id FROM conversions
 WHERE owner = $1 AND changed IS NULL AND job_id > $2
 ORDER BY changed, job_id
 LIMIT $3
"""

# Followers of the lists hear of it through the notification: their rows are simply not there any more. A trigger hands
# the documents to the janitor.
_REMOVE = """
WITH removed AS (
    DELETE FROM conversions WHERE job_id = ANY ($1::uuid[]) RETURNING owner, upload_deleted_at, upload_borrowed
), told AS (
    SELECT count(waybill_tell(owner)) FROM (SELECT DISTINCT owner FROM removed) AS owners
)
SELECT count(*) FILTER (WHERE upload_deleted_at IS NULL AND NOT upload_borrowed) FROM removed, told
"""

_REMOVE_TOMBSTONES = """
DELETE FROM conversions
 WHERE job_id = ANY (ARRAY(SELECT job_id FROM conversions WHERE deleted_at IS NOT NULL AND tenant = $1 LIMIT $2))
RETURNING job_id
"""

_REMOVE_THRESHOLDS = "DELETE FROM review_thresholds WHERE tenant = $1"

_START = f"0.{uuid.UUID(int=0)}"
_UNLISTED = "unlisted"


async def jobs_of_owner(connection: Connection, owner: str, cursor: str | None, limit: int) -> JobPage:
    """First what is listed, as it was last changed, then the rest: the order of the index by owner."""
    changed, _, after = (cursor or _START).partition(".")
    if changed == _UNLISTED:
        found = [row["job_id"] for row in await connection.fetch(_UNLISTED_OF_OWNER, owner, uuid.UUID(after), limit)]
        return JobPage(found, f"{_UNLISTED}.{found[-1]}" if found else None)
    rows = await connection.fetch(_OF_OWNER, owner, changed, uuid.UUID(after), limit)
    last = f"{rows[-1]['changed']}.{rows[-1]['job_id']}" if rows else f"{_UNLISTED}.{uuid.UUID(int=0)}"
    return JobPage([row["job_id"] for row in rows], last)


async def remove(connection: Connection, job_ids: Sequence[uuid.UUID]) -> int:
    """How many documents went with them."""
    return int(await connection.fetchval(_REMOVE, job_ids))


async def remove_rest(connection: Connection, tenant: str, limit: int) -> list[uuid.UUID]:
    """What outlived the tenant's jobs: tombstones, what an operator decided about reviews, samples, and mappings."""
    await connection.execute(_REMOVE_THRESHOLDS, tenant)
    gone = [row["job_id"] for row in await connection.fetch(_REMOVE_TOMBSTONES, tenant, limit)]
    if not gone:
        gone = await mappings.remove_samples(connection, tenant, limit)
    if not gone:
        await mappings.remove_all(connection, tenant)
    return gone
