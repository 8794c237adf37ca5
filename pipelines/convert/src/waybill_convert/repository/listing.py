"""Lists of an owner's conversions: pages, changes since a cursor, counts by status.

Every statement names the owner, but for `everybodys`, which is for admins. Conversions that are in no list have neither
`listed_at` nor `changed`. A comparison with NULL is never true, so they are outside of every range below, and no range
of an index has them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill_convert.cursors import ListPosition, Since
from waybill_convert.repository.details import DETAILS
from waybill_convert.status import Status

if TYPE_CHECKING:
    from waybill.db.database import Connection

# Each of these reads one index in order and stops at the limit; then each row is completed by primary keys. LATERAL and
# OFFSET leave the planner no other way round, whatever it believes about the size of the engine's table.
_PAGE = f"""
SELECT details.*
  FROM (SELECT job_id, listed_at FROM conversions
         WHERE owner = $1 AND deleted_at IS NULL AND (listed_at, job_id) < ($2, $3)
         ORDER BY listed_at DESC, job_id DESC
         LIMIT $4) AS page,
       LATERAL ({DETAILS} WHERE conversions.job_id = page.job_id OFFSET 0) AS details
 ORDER BY page.listed_at DESC, page.job_id DESC
"""  # noqa: S608 - of constants

_PAGE_FILTERED = f"""
SELECT details.*
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
       LATERAL ({DETAILS} WHERE conversions.job_id = page.job_id OFFSET 0) AS details
 ORDER BY page.listed_at DESC, page.job_id DESC
"""  # noqa: S608 - of constants

_CHANGED = f"""
SELECT details.*
  FROM (SELECT job_id, changed FROM conversions
         WHERE owner = $1 AND (changed, job_id) >= ($2::text::xid8, $3)
         ORDER BY changed, job_id
         LIMIT $4) AS seen,
       LATERAL ({DETAILS} WHERE conversions.job_id = seen.job_id OFFSET 0) AS details
 WHERE details.deleted_at IS NULL
 ORDER BY seen.changed, seen.job_id
"""  # noqa: S608 - of constants

# Without their jobs, which are gone.
_GONE = """
SELECT job_id, changed::text::bigint AS changed, deleted_at IS NOT NULL AS deleted
  FROM (SELECT job_id, changed, deleted_at FROM conversions
         WHERE owner = $1 AND (changed, job_id) >= ($2::text::xid8, $3)
         ORDER BY changed, job_id
         LIMIT $4) AS seen
"""

# By the clock, for who has no cursor yet. A minute early: a transaction's time is when it began, not when it became
# visible, and none may be idle for longer (see `Database`).
_FIRST_SINCE = """
SELECT COALESCE(min(changed::text::bigint), 0) FROM conversions
 WHERE owner = $1 AND changed IS NOT NULL AND changed_at >= $2::timestamptz - interval '1 minute'
"""

# Read before the rows themselves: whatever commits in between is then seen twice, never missed. Of each status no more
# entries of the index are walked than asked for, however many there are.
_OVERVIEW = """
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest,
       (SELECT jsonb_object_agg(wanted.status, (
                   SELECT count(*) FROM (
                       SELECT FROM conversions
                        WHERE owner = $1 AND deleted_at IS NULL AND conversions.status = wanted.status
                          AND listed_at IS NOT NULL
                        ORDER BY listed_at DESC, job_id DESC
                        LIMIT $3) AS first_ones))
          FROM unnest($2::text[]) AS wanted (status)) AS counts
"""

_COUNT = """
SELECT status, count(*) FROM conversions
 WHERE owner = $1 AND deleted_at IS NULL AND status = ANY ($2::text[]) AND listed_at IS NOT NULL
 GROUP BY status
"""

# By primary key, which is the order of creation, and only so many rows: a filter that hardly anything matches must not
# read all of the table.
_WALK = """
SELECT job_id, deleted_at IS NULL AND ($2::text IS NULL OR tenant = $2)
       AND (cardinality($3::text[]) = 0 OR status = ANY ($3::text[])) AS wanted
  FROM conversions WHERE job_id < $1 ORDER BY job_id DESC LIMIT $4
"""

_EACH = f"""
SELECT details.*
  FROM unnest($1::uuid[]) AS wanted (job_id),
       LATERAL ({DETAILS} WHERE conversions.job_id = wanted.job_id OFFSET 0) AS details
 ORDER BY details.job_id DESC
"""  # noqa: S608 - of constants

_WALKED = 1000

_NEWEST = datetime.max  # noqa: DTZ901 - how the driver spells Postgres's infinity
_LAST_ID = uuid.UUID(int=2**128 - 1)
_FIRST_ID = uuid.UUID(int=0)


async def page(
    connection: Connection,
    owner: str,
    *,
    statuses: Sequence[Status] = (),
    words: str | None = None,
    after: ListPosition | None = None,
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


async def everybodys(
    connection: Connection, *, tenant: str | None, statuses: Sequence[Status], before: uuid.UUID | None, limit: int
) -> tuple[list[Any], uuid.UUID | None]:
    """Conversions of all owners, and where to go on. A page may have fewer than `limit`, or none, and not be the last.

    This is the one statement that does not name an owner: only admins may see what it finds.
    """
    walked = await connection.fetch(_WALK, before or _LAST_ID, tenant, list(statuses), _WALKED)
    wanted = [row["job_id"] for row in walked if row["wanted"]][:limit]
    if len(wanted) == limit and wanted[-1] != walked[-1]["job_id"]:
        following: uuid.UUID | None = wanted[-1]
    else:
        following = walked[-1]["job_id"] if len(walked) == _WALKED else None
    return await connection.fetch(_EACH, wanted), following


def _escape(words: str) -> str:
    return words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
