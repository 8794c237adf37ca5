"""Forgetting a tenant or a browser's session for good: its documents, its results, its rows.

An erasure is a row that stays open until nothing is left, so whoever is killed in the middle is followed by the next
one who works on it: the command, the API or the janitor. Jobs go in batches, each in one short transaction with its
rows, and their files become garbage with them; what runs is asked to stop and goes when it has. Pins do not count, a
legal hold does.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from waybill import garbage
from waybill.errors import Conflict, NotFound
from waybill.ids import new_id
from waybill.retention import let_holds_wait, refuse_if_held
from waybill.storage.keys import dated
from waybill_engine import control

if TYPE_CHECKING:
    from waybill.db import Database
    from waybill.db.database import Connection
    from waybill.storage import Storage

BATCH = 500
_PAGE = 5000

_REQUEST = "INSERT INTO erasures (id, tenant, owner, requested_at) VALUES ($1, $2, $3, now())"

_OPEN_ALREADY = """
SELECT id FROM erasures WHERE finished_at IS NULL AND tenant IS NOT DISTINCT FROM $1 AND owner IS NOT DISTINCT FROM $2
"""

_GET = "SELECT id, tenant, owner, requested_at, finished_at, jobs, files FROM erasures WHERE id = $1"

_OPEN = "SELECT id FROM erasures WHERE finished_at IS NULL ORDER BY id"

# Nobody can add to what is being removed. Replicas that remember a key are told to forget it.
_REVOKE_KEYS = """
WITH revoked AS (
    UPDATE api_keys SET revoked_at = now() WHERE tenant = $1 AND revoked_at IS NULL RETURNING id
)
SELECT count(pg_notify('waybill_changes', 'key:' || id::text)) FROM revoked
"""

# Of an owner everything is in the pipelines' own tables, with an index by owner. Rows that outlived their job go too.
_OF_OWNER = """
SELECT job_id AS id, changed::text AS changed FROM conversions
 WHERE owner = $1 AND (changed, job_id) > ($2::text::xid8, $3)
 ORDER BY changed, job_id
 LIMIT $4
"""

# Tenants have no index on the hot table; it is gone through by its primary key, page by page.
_OF_TENANT = """
SELECT id, tenant = $1 AS theirs FROM jobs WHERE id > $2 ORDER BY id LIMIT $3
"""

_TOMBSTONES_OF_TENANT = """
DELETE FROM conversions
 WHERE job_id = ANY (ARRAY(SELECT job_id FROM conversions WHERE deleted_at IS NOT NULL AND tenant = $1 LIMIT $2))
RETURNING job_id
"""

# What somebody else holds just now is left for the next look, like what runs.
_LOCK = """
SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) AND state <> 'running' ORDER BY id FOR UPDATE SKIP LOCKED
"""

_THERE = """
SELECT id, state = 'running' AS running, tenants.hold_at IS NOT NULL AS held
  FROM jobs LEFT JOIN tenants ON tenants.name = jobs.tenant
 WHERE id = ANY ($1::uuid[])
"""

# Followers of the lists hear of it through the notification: their rows are simply not there any more.
_REMOVE = """
WITH events AS (
    DELETE FROM job_events WHERE job_id = ANY ($1::uuid[])
), artefacts AS (
    DELETE FROM job_artefacts WHERE job_id = ANY ($1::uuid[]) RETURNING storage_key
), documents AS (
    DELETE FROM conversions WHERE job_id = ANY ($1::uuid[]) RETURNING owner, upload_deleted_at
), removed AS (
    DELETE FROM jobs WHERE id = ANY ($1::uuid[]) RETURNING id
), told AS (
    SELECT count(pg_notify('waybill_changes', owner)) FROM (SELECT DISTINCT owner FROM documents) AS owners
)
UPDATE erasures
   SET jobs = jobs + (SELECT count(*) FROM removed),
       files = files + (SELECT count(*) FROM artefacts)
               + (SELECT count(*) FROM documents WHERE upload_deleted_at IS NULL)
  FROM told
 WHERE erasures.id = $2
"""

_REMOVE_TENANT = (
    "DELETE FROM api_keys WHERE tenant = $1",
    "DELETE FROM idempotency_keys WHERE tenant = $1",
    "DELETE FROM schedules WHERE tenant = $1",
    "DELETE FROM caps WHERE tenant = $1",
    "DELETE FROM tenants WHERE name = $1",
)

_FINISH = "UPDATE erasures SET finished_at = COALESCE(finished_at, now()) WHERE id = $1"


@dataclass(frozen=True, slots=True)
class Erasure:
    id: uuid.UUID
    tenant: str | None
    owner: str | None
    requested_at: datetime
    finished_at: datetime | None
    jobs: int
    files: int


async def request(connection: Connection, tenant: str, *, owner: str | None = None) -> uuid.UUID:
    """Begin to forget a tenant, or one owner within it; one that was begun already goes on. Conflict under a hold."""
    async with connection.transaction():
        await let_holds_wait(connection)
        await refuse_if_held(connection, tenant)
        whole = tenant if owner is None else None
        known = await connection.fetchval(_OPEN_ALREADY, whole, owner)
        if known is not None:
            return uuid.UUID(str(known))
        erasure_id = new_id()
        await connection.execute(_REQUEST, erasure_id, whole, owner)
    return erasure_id


async def get(connection: Connection, erasure_id: uuid.UUID) -> Erasure:
    row = await connection.fetchrow(_GET, erasure_id)
    if row is None:
        raise NotFound("There is no such erasure.")
    return Erasure(*row)


async def open_ones(connection: Connection) -> list[uuid.UUID]:
    return [row["id"] for row in await connection.fetch(_OPEN)]


async def erase(database: Database, storage: Storage, erasure_id: uuid.UUID, *, within: float) -> Erasure:
    """Work on it until it is finished, the time is up, or only what still runs is left. Conflict under a hold."""
    until = time.monotonic() + within
    async with database.hot() as connection:
        erasure = await get(connection, erasure_id)
        if erasure.tenant is not None:
            await connection.fetchval(_REVOKE_KEYS, erasure.tenant)
    if erasure.finished_at is None and await _remove_jobs(database, erasure, until):
        await _remove_rest(database, erasure)
        # All of it, ours among it: only then is the erasure what it says.
        if not (await garbage.sweep_all(database, storage)).failed:
            async with database.hot() as connection:
                await connection.execute(_FINISH, erasure_id)
    async with database.hot() as connection:
        return await get(connection, erasure_id)


async def _remove_jobs(database: Database, erasure: Erasure, until: float) -> bool:
    """True when no job is left."""
    left, after, changed = 0, uuid.UUID(int=0), "0"
    while time.monotonic() < until:
        async with database.hot() as connection:
            if erasure.owner is not None:
                page = await connection.fetch(_OF_OWNER, erasure.owner, changed, after, BATCH)
                changed = page[-1]["changed"] if page else changed
                ids = [row["id"] for row in page]
            else:
                page = await connection.fetch(_OF_TENANT, erasure.tenant, after, _PAGE)
                ids = [row["id"] for row in page if row["theirs"]]
        if not page:
            return left == 0
        after = page[-1]["id"]
        for start in range(0, len(ids), BATCH):
            left += await _remove_batch(database, erasure, ids[start : start + BATCH])
    return False


async def _remove_batch(database: Database, erasure: Erasure, ids: Sequence[uuid.UUID]) -> int:
    """How many of them are left because they run, after asking those to stop."""
    async with database.hot() as connection, connection.transaction():
        await let_holds_wait(connection)
        locked = {row["id"] for row in await connection.fetch(_LOCK, ids)}
        there = await connection.fetch(_THERE, ids)
        if any(row["held"] for row in there):
            raise Conflict("This cannot be removed now: it is under legal hold.")
        left = {row["id"] for row in there} - locked
        ended = [one for one in ids if one not in left]
        await connection.execute(_REMOVE, ended, erasure.id)
        # What runs of theirs stored and never published has no row that could name it.
        await garbage.doom(connection, [_results_of(one) for one in ended])
    for row in there:
        if row["running"]:
            await _ask_to_stop(database, row["id"])
    return len(left)


async def _ask_to_stop(database: Database, job_id: uuid.UUID) -> None:
    with contextlib.suppress(Conflict, NotFound):  # it has just ended
        async with database.hot() as connection:
            await control.cancel(connection, job_id, "Its owner is being erased")


async def _remove_rest(database: Database, erasure: Erasure) -> None:
    if erasure.tenant is None:
        return
    while True:
        async with database.hot() as connection, connection.transaction():
            await let_holds_wait(connection)
            await refuse_if_held(connection, erasure.tenant)
            gone = [row["job_id"] for row in await connection.fetch(_TOMBSTONES_OF_TENANT, erasure.tenant, BATCH)]
            await garbage.doom(connection, [_results_of(one) for one in gone])
        if not gone:
            break
    async with database.hot() as connection, connection.transaction():
        await let_holds_wait(connection)
        await refuse_if_held(connection, erasure.tenant)
        for statement in _REMOVE_TENANT:
            await connection.execute(statement, erasure.tenant)


def _results_of(job_id: uuid.UUID) -> str:
    return f"{dated('results', job_id)}/"
