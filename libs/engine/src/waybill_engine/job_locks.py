"""Jobs that stand still for a moment, for pipelines that change rows of their own together with a job.

Lock the job first, then look at your rows, then change them: whoever moves, deletes or cleans up the job takes the same
lock before it touches anything that belongs to it. A job that is on the shelf is brought back first. Nothing here waits
for a worker; a lock lasts until the caller's transaction ends, so that must be short.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg

from waybill_engine import shelf
from waybill_engine.models import State

if TYPE_CHECKING:
    from waybill.db.database import Connection

_LOCK = "SELECT state, owner, parent_id, cancel_requested_at IS NOT NULL AS stopping FROM jobs WHERE id = $1 FOR UPDATE"

_LOCK_SHARED = (
    "SELECT state, owner, parent_id, cancel_requested_at IS NOT NULL AS stopping FROM jobs WHERE id = $1 FOR SHARE"
)

# In the order of their ids, like everybody who locks several: otherwise two could wait for each other.
_LOCK_ALL = "SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE"


@dataclass(frozen=True, slots=True)
class LockedJob:
    """A job as it is while the lock lasts."""

    state: State
    owner: str
    parent_id: uuid.UUID | None
    """The job that waits, or waited, for it: it belongs to that job's family."""
    stopping: bool
    """Somebody has asked it to stop."""


async def lock_job(connection: Connection, job_id: uuid.UUID) -> LockedJob | None:
    """Lock a job; None if it is not there."""
    return await _lock(connection, _LOCK, job_id)


async def share_job(connection: Connection, job_id: uuid.UUID) -> LockedJob | None:
    """The same for those who only need it to stay as it is: any number of them can share the lock."""
    return await _lock(connection, _LOCK_SHARED, job_id)


async def lock_jobs(connection: Connection, job_ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Lock several jobs, waiting for each; those that are there."""
    found = [row["id"] for row in await connection.fetch(_LOCK_ALL, job_ids)]
    if len(found) < len(job_ids) and await shelf.unshelve(connection, sorted(set(job_ids) - set(found))):
        return [row["id"] for row in await connection.fetch(_LOCK_ALL, job_ids)]
    return found


async def _lock(connection: Connection, statement: str, job_id: uuid.UUID) -> LockedJob | None:
    row = await connection.fetchrow(statement, job_id)
    if row is None and await shelf.unshelve(connection, [job_id]):
        row = await connection.fetchrow(statement, job_id)
    return _locked(row)


def _locked(row: asyncpg.Record | None) -> LockedJob | None:
    return None if row is None else LockedJob(State(row["state"]), row["owner"], row["parent_id"], row["stopping"])
