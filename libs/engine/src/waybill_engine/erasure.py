"""Forgetting a tenant or a browser's session for good: its documents, its results, its rows.

An erasure is a row that stays open until nothing is left, so whoever is killed in the middle is followed by the next
one who works on it: the command, the API or the janitor. Jobs go in batches, each in one short transaction with the
rows that the pipelines have of them (`Eraser`), and their files become garbage with them. A job that runs is asked to
stop and goes when it has. Pins do not count, a legal hold does.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from waybill import audit, garbage
from waybill.errors import Conflict, NotFound
from waybill.ids import new_id
from waybill.messages import msg
from waybill.retention.holds import let_holds_wait, refuse_if_held
from waybill_engine import arrivals, control
from waybill_engine.artefacts import artefact_folder
from waybill_engine.retention import delete

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

_ALL = "SELECT id, tenant, owner, requested_at, finished_at, jobs, files FROM erasures ORDER BY id"

# With its own id: a database that has heard of it already does it no second time.
_REPEAT = """
INSERT INTO erasures (id, tenant, owner, requested_at) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING RETURNING id
"""

_OPEN = "SELECT id FROM erasures WHERE finished_at IS NULL ORDER BY id"

# Nobody can add to what is being removed. Replicas that remember a key are told to forget it.
_REVOKE_KEYS = """
WITH revoked AS (
    UPDATE api_keys SET revoked_at = now() WHERE tenant = $1 AND revoked_at IS NULL RETURNING id
)
SELECT count(pg_notify('waybill_changes', 'key:' || id::text)) FROM revoked
"""

# All jobs are gone through by their primary keys, page by page: a running job is in no index by tenant.
_OF_TENANT = """
SELECT id, tenant = $1 AS theirs FROM all_jobs WHERE id > $2 ORDER BY id LIMIT $3
"""

# What somebody else has locked just now is left for the next look, like what runs.
_LOCK = """
SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) AND state <> 'running' ORDER BY id FOR UPDATE SKIP LOCKED
"""

_LOCK_SHELVED = "SELECT id FROM shelved_jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED"

_THERE = """
SELECT id, state = 'running' AS running, tenants.hold_at IS NOT NULL AS held
  FROM all_jobs AS jobs LEFT JOIN tenants ON tenants.name = jobs.tenant
 WHERE id = ANY ($1::uuid[])
"""

_COUNT = "UPDATE erasures SET jobs = jobs + $2, files = files + $3 WHERE id = $1"

_REMOVE_TENANT = (
    "DELETE FROM api_keys WHERE tenant = $1",
    "DELETE FROM idempotency_keys WHERE tenant = $1",
    "DELETE FROM schedules WHERE tenant = $1",
    "DELETE FROM missed_turns WHERE tenant = $1",
    "DELETE FROM caps WHERE tenant = $1",
    "DELETE FROM rates WHERE tenant = $1",
    "DELETE FROM retention_ages WHERE tenant = $1",
    "DELETE FROM tenants WHERE name = $1",
)

_FINISH = "UPDATE erasures SET finished_at = now() WHERE id = $1 AND finished_at IS NULL RETURNING id"


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some of an owner's jobs, and where the next ones begin."""

    job_ids: Sequence[uuid.UUID]
    cursor: str | None
    """None when there are no more."""


@dataclass(frozen=True, slots=True)
class Eraser:
    """How a pipeline forgets what it knows of jobs. Each of these runs in the caller's transaction, under its locks."""

    jobs_of_owner: Callable[[Connection, str, str | None, int], Awaitable[JobPage]]
    """The next jobs of an owner that the pipeline has rows of, after a cursor. Rows that outlived their job count."""
    remove: Callable[[Connection, Sequence[uuid.UUID]], Awaitable[int]]
    """Remove the rows of these jobs, and tell whoever follows them; how many stored files the rows named."""
    remove_rest: Callable[[Connection, str, int], Awaitable[Sequence[uuid.UUID]]]
    """Remove some rows of a tenant that outlived their job; the jobs they were of, none when none is left."""


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
        await arrivals.await_arrivals(connection, tenant, owner)
        whole = tenant if owner is None else None
        known = await connection.fetchval(_OPEN_ALREADY, whole, owner)
        if known is not None:
            return uuid.UUID(str(known))
        erasure_id = new_id()
        await connection.execute(_REQUEST, erasure_id, whole, owner)
        await audit.record(connection, "erasure.requested", f"erasure:{erasure_id}", tenant=tenant, detail=_of(owner))
    return erasure_id


async def get(connection: Connection, erasure_id: uuid.UUID) -> Erasure:
    row = await connection.fetchrow(_GET, erasure_id)
    if row is None:
        raise NotFound("There is no such erasure.")
    return Erasure(*row)


async def all_ones(connection: Connection) -> list[Erasure]:
    """Every erasure that was ever requested."""
    return [Erasure(*row) for row in await connection.fetch(_ALL)]


async def repeat(
    connection: Connection, erasure_id: uuid.UUID, tenant: str | None, owner: str | None, requested_at: datetime
) -> bool:
    """Begin an erasure again in a database that was restored from before it. False if it is known here."""
    return await connection.fetchval(_REPEAT, erasure_id, tenant, owner, requested_at) is not None


async def open_ones(connection: Connection) -> list[uuid.UUID]:
    return [row["id"] for row in await connection.fetch(_OPEN)]


async def erase(
    database: Database, storage: Storage, erasers: Sequence[Eraser], erasure_id: uuid.UUID, *, within: float
) -> Erasure:
    """Work on it until it is finished, the time is up, or only what still runs is left. Conflict under a hold.

    `erasers` are those of all installed pipelines: `waybill.pipelines.brought("erasure")`.
    """
    until = time.monotonic() + within
    async with database.hot() as connection:
        erasure = await get(connection, erasure_id)
        if erasure.tenant is not None:
            await connection.fetchval(_REVOKE_KEYS, erasure.tenant)
    if (
        erasure.finished_at is None
        and await _remove_all(database, erasers, erasure, until)
        # All of it, ours among it: only then is the erasure what it says.
        and not (await garbage.sweep_all(database, storage)).failed
    ):
        # A process that was killed while it stored something of theirs has left a part of it.
        await storage.remove_abandoned()
        async with database.hot() as connection, connection.transaction():
            await _finish(connection, erasure)
    async with database.hot() as connection:
        return await get(connection, erasure_id)


async def _finish(connection: Connection, erasure: Erasure) -> None:
    if await connection.fetchval(_FINISH, erasure.id) is None:
        return  # somebody else was faster
    done = await get(connection, erasure.id)
    detail = {**_of(erasure.owner), "jobs": done.jobs, "files": done.files}
    await audit.record(connection, "erasure.finished", f"erasure:{done.id}", tenant=erasure.tenant, detail=detail)


def _of(owner: str | None) -> dict[str, str]:
    return {} if owner is None else {"owner": owner}


async def _remove_all(database: Database, erasers: Sequence[Eraser], erasure: Erasure, until: float) -> bool:
    """True when no row is left."""
    if not await _remove_jobs(database, erasers, erasure, until):
        return False
    if erasure.tenant is None:
        return True
    await _remove_rest(database, erasers, erasure.tenant)
    # Once more: a schedule may have made a job before it went with the rest.
    return await _remove_jobs(database, erasers, erasure, until)


async def _remove_jobs(database: Database, erasers: Sequence[Eraser], erasure: Erasure, until: float) -> bool:
    """True when no job is left."""
    left = 0
    pages = _of_tenant if erasure.owner is None else _of_owner
    async with contextlib.aclosing(pages(database, erasers, erasure)) as found:
        async for job_ids in found:
            if time.monotonic() >= until:
                return False
            left += await _remove_batch(database, erasers, erasure, job_ids)
    return left == 0


async def _of_owner(
    database: Database, erasers: Sequence[Eraser], erasure: Erasure
) -> AsyncGenerator[Sequence[uuid.UUID], None]:
    """Everything of an owner is in the pipelines' own tables, with an index by owner."""
    assert erasure.owner is not None  # noqa: S101 - an erasure has a tenant or an owner
    for eraser in erasers:
        cursor: str | None = None
        while True:
            async with database.hot() as connection:
                page = await eraser.jobs_of_owner(connection, erasure.owner, cursor, BATCH)
            yield page.job_ids
            cursor = page.cursor
            if cursor is None:
                break


async def _of_tenant(
    database: Database, _erasers: Sequence[Eraser], erasure: Erasure
) -> AsyncGenerator[Sequence[uuid.UUID], None]:
    """Everything of a tenant is among all jobs: look at all of them, page by page."""
    after = uuid.UUID(int=0)
    while True:
        async with database.hot() as connection:
            page = await connection.fetch(_OF_TENANT, erasure.tenant, after, _PAGE)
        if not page:
            return
        after = page[-1]["id"]
        theirs = [row["id"] for row in page if row["theirs"]]
        for start in range(0, len(theirs) or 1, BATCH):
            yield theirs[start : start + BATCH]


async def _remove_batch(
    database: Database, erasers: Sequence[Eraser], erasure: Erasure, ids: Sequence[uuid.UUID]
) -> int:
    """How many of them are left because they run, after asking those to stop."""
    if not ids:
        return 0
    async with database.hot() as connection, connection.transaction():
        await let_holds_wait(connection)
        locked = {row["id"] for lock in (_LOCK, _LOCK_SHELVED) for row in await connection.fetch(lock, ids)}
        there = await connection.fetch(_THERE, ids)
        if any(row["held"] for row in there):
            raise Conflict(msg("retention.legal_hold"))
        left = {row["id"] for row in there} - locked
        ended = [one for one in ids if one not in left]
        # Pipelines' rows before their job's: they go for good, and leave no tombstone.
        named = sum([await eraser.remove(connection, ended) for eraser in erasers])
        deleted = await delete(connection, ended)
        await connection.execute(_COUNT, erasure.id, deleted.jobs, len(deleted.keys) + named)
        # What runs of theirs stored and never published has no row that could name it.
        await garbage.doom(connection, [f"{artefact_folder(one)}/" for one in ended])
    for row in there:
        if row["running"]:
            await _ask_to_stop(database, row["id"])
    return len(left)


async def _ask_to_stop(database: Database, job_id: uuid.UUID) -> None:
    with contextlib.suppress(Conflict, NotFound):  # it has just ended
        async with database.hot() as connection:
            await control.cancel(connection, job_id, "Its owner is being erased")


async def _remove_rest(database: Database, erasers: Sequence[Eraser], tenant: str) -> None:
    for eraser in erasers:
        gone: Sequence[uuid.UUID] = [uuid.UUID(int=0)]
        while gone:
            async with database.hot() as connection, connection.transaction():
                await let_holds_wait(connection)
                await refuse_if_held(connection, tenant)
                gone = await eraser.remove_rest(connection, tenant, BATCH)
                await garbage.doom(connection, [f"{artefact_folder(one)}/" for one in gone])
    async with database.hot() as connection, connection.transaction():
        await let_holds_wait(connection)
        await refuse_if_held(connection, tenant)
        for statement in _REMOVE_TENANT:
            await connection.execute(statement, tenant)
