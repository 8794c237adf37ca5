"""The shelf: jobs that ended a while ago leave the hot table, so that it holds what is alive and little more.

A shelved job is the same row in another table (`shelved_jobs`), with its history (`shelved_job_events`). Whoever only
looks finds it there (`all_jobs`). Whoever wants to change it has it brought back first (`unshelve`), in the same
transaction, and goes on as if it had never been away; the next run of the janitor shelves it again.

What people still work with, or what an index of the hot table must know, is not shelved: active and dead-lettered jobs,
pinned ones, those whose unique key still counts, those whose family still has something in the hot table above or
below, and those whose id is no UUIDv7 and so belongs to no day. Everything below an active job is in the hot table.

Shelving and bringing back exclude each other by an advisory lock: the janitor takes it alone for one small batch,
everybody else shares it. Workers never take it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from waybill.ids import made_at
from waybill_engine import shelf_days
from waybill_engine.shelf_models import EVENT_COLUMNS, JOB_COLUMNS

if TYPE_CHECKING:
    from waybill.db.database import Connection

_LOCK_ALONE = f"SELECT pg_advisory_xact_lock({shelf_days.LOCK})"
_LOCK_SHARED = f"SELECT pg_advisory_xact_lock_shared({shelf_days.LOCK})"

# Nobody waits longer for a batch than for this and the batch itself.
_PATIENCE = "SET LOCAL lock_timeout = '1s'"

# Processes of release 0.1.0 know only the hot table.
_TOO_OLD = """
SELECT EXISTS (SELECT FROM workers WHERE state IN ('active', 'draining') AND version LIKE '0.1.%')
"""

_PAGE = "SELECT id FROM jobs WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3"

_MAY_GO = """(
    jobs.state IN ('succeeded', 'failed', 'cancelled')
    AND jobs.finished_at <= now() - $2::float8 * interval '1 second'
    AND jobs.pinned_at IS NULL
    AND (jobs.unique_scope IS NULL OR jobs.unique_scope = 'active' OR jobs.unique_until <= now())
)"""

_DUE = f"SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) AND {_MAY_GO} ORDER BY id"  # noqa: S608 - made of constants

# An id that is on the shelf already was used twice, against the rules; the younger job stays where it is.
_LOCK = f"""
SELECT id, parent_id FROM jobs
 WHERE id = ANY ($1::uuid[]) AND {_MAY_GO}
   AND (children = 0 OR NOT EXISTS (SELECT FROM jobs AS child WHERE child.parent_id = jobs.id))
   AND NOT EXISTS (SELECT FROM shelved_jobs WHERE shelved_jobs.id = jobs.id)
 ORDER BY id
   FOR UPDATE OF jobs SKIP LOCKED
"""  # noqa: S608 - made of constants

# A parent that is locked may be about to be retried. Its children then stay, because all below an active job does.
_LOCK_PARENTS = """
SELECT id FROM jobs
 WHERE id = ANY ($1::uuid[]) AND state IN ('succeeded', 'failed', 'dead_letter', 'cancelled')
 ORDER BY id DESC
   FOR SHARE SKIP LOCKED
"""

_HOT = "SELECT id FROM jobs WHERE id = ANY ($1::uuid[])"

# A key whose window has passed is free: nobody looks for it on the shelf.
_FREED = {
    name: f"CASE WHEN unique_scope = 'active' THEN {name} END"
    for name in ("unique_key", "unique_scope", "unique_until")
}
_SHELVED_COLUMNS = ", ".join(_FREED.get(name, name) for name in JOB_COLUMNS.split(", "))

_SHELVE = f"""
WITH gone AS (
    DELETE FROM jobs WHERE id = ANY ($1::uuid[]) RETURNING {JOB_COLUMNS}
), their_events AS (
    DELETE FROM job_events WHERE job_id = ANY ($1::uuid[]) RETURNING {EVENT_COLUMNS}
), history AS (
    INSERT INTO shelved_job_events ({EVENT_COLUMNS}) SELECT {EVENT_COLUMNS} FROM their_events
)
INSERT INTO shelved_jobs ({JOB_COLUMNS}) SELECT {_SHELVED_COLUMNS} FROM gone
"""  # noqa: S608 - made of constants

_UNSHELVE = f"""
WITH back AS (
    DELETE FROM shelved_jobs WHERE id = ANY ($1::uuid[]) RETURNING {JOB_COLUMNS}
), their_events AS (
    DELETE FROM shelved_job_events WHERE job_id = ANY ($1::uuid[]) RETURNING {EVENT_COLUMNS}
), history AS (
    INSERT INTO job_events ({EVENT_COLUMNS}) OVERRIDING SYSTEM VALUE SELECT {EVENT_COLUMNS} FROM their_events
)
INSERT INTO jobs ({JOB_COLUMNS}) SELECT {JOB_COLUMNS} FROM back ORDER BY id
"""  # noqa: S608 - made of constants

_ON_SHELF = "SELECT id FROM shelved_jobs WHERE id = ANY ($1::uuid[])"

# The job itself and everything below it that is on the shelf. What lies between them may be in the hot table.
_BELOW = """
WITH RECURSIVE family AS (
    SELECT id, children, shelved FROM all_jobs WHERE id = $1
     UNION ALL
    SELECT child.id, child.children, child.shelved
      FROM family, LATERAL (
               SELECT id, children, shelved FROM all_jobs WHERE all_jobs.parent_id = family.id OFFSET 0
           ) AS child
     WHERE family.children > 0
)
SELECT id FROM family WHERE shelved
"""


async def may_shelve(connection: Connection) -> bool:
    """False while a worker of a release lives that knows only the hot table."""
    return not await connection.fetchval(_TOO_OLD)


async def page(connection: Connection, after: uuid.UUID, until: uuid.UUID, limit: int) -> list[uuid.UUID]:
    """The next jobs of the hot table in the order of their ids."""
    return [row["id"] for row in await connection.fetch(_PAGE, after, until, limit)]


async def due(connection: Connection, job_ids: Sequence[uuid.UUID], seconds: float) -> list[uuid.UUID]:
    """Those of the jobs that ended so many seconds ago and may be shelved, as far as one sees without a lock."""
    found = await connection.fetch(_DUE, _of_some_day(job_ids), seconds)
    return [row["id"] for row in found]


async def shelve(connection: Connection, job_ids: Sequence[uuid.UUID], seconds: float) -> int:
    """Shelve those of the jobs that may be, and return how many. What somebody has locked is left for the next time."""
    job_ids = _of_some_day(job_ids)
    await shelf_days.make(connection, {_day(job_id) for job_id in job_ids})
    async with connection.transaction():
        await connection.execute(_PATIENCE)
        await connection.execute(_LOCK_ALONE)
        locked = {row["id"]: row["parent_id"] for row in await connection.fetch(_LOCK, job_ids, seconds)}
        parents = list({one for one in locked.values() if one is not None})
        if parents:
            ended = {row["id"] for row in await connection.fetch(_LOCK_PARENTS, parents)}
            hot = {row["id"] for row in await connection.fetch(_HOT, parents)}
            locked = {one: parent for one, parent in locked.items() if parent in ended or parent not in hot}
        if locked:
            await connection.execute(_SHELVE, list(locked))
    return len(locked)


async def unshelve(connection: Connection, job_ids: Sequence[uuid.UUID]) -> bool:
    """Bring jobs back into the hot table, in the caller's transaction. False if none of them was on the shelf."""
    if not job_ids:
        return False
    await connection.execute(_LOCK_SHARED)
    if not await connection.fetch(_ON_SHELF, job_ids):
        return False
    await connection.execute(_UNSHELVE, job_ids)
    return True


async def unshelve_family(connection: Connection, job_id: uuid.UUID) -> None:
    """The same for a job and everything below it: what is below an active job is in the hot table."""
    await connection.execute(_LOCK_SHARED)
    below = [row["id"] for row in await connection.fetch(_BELOW, job_id)]
    if below:
        await connection.execute(_UNSHELVE, below)


async def among(connection: Connection, job_ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the jobs that are on the shelf."""
    return {row["id"] for row in await connection.fetch(_ON_SHELF, job_ids)}


def _day(job_id: uuid.UUID) -> date:
    return made_at(job_id).date()


def _of_some_day(job_ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Those whose id carries a time that can be right; others would each need a partition of their own."""
    return [one for one in job_ids if one.version == 7 and shelf_days.FIRST <= _day(one) <= shelf_days.LAST]
