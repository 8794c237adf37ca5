"""Families: a parent that runs when all its children have ended, however they ended.

The parent is the continuation. It waits as `scheduled`, with `pending_children` above zero and a `run_at` of infinity.
The statement that ends its last child makes it `queued`, and from there it is a job like any other. A child that is
`awaited` counts in its parent's `pending_children` while it is active; the transaction that ends the child also counts
it down there (`finish`, `rescue`, `control`).

Locks are taken from children to parents: first the jobs that end, in the order of their ids, then the parents that wait
for them, the highest id first. Ids grow, so a parent that is itself a child comes before its own parent. Where an
enqueuer's clock is wrong that may be the other way round. Postgres then ends one of two transactions that wait for
each other, and its caller tries again.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg
from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.db.database import driver
from waybill.errors import Conflict, NotFound, Refused
from waybill_engine.announcements import ANNOUNCE_QUEUES
from waybill_engine.enqueue import Enqueued, insert
from waybill_engine.models import State
from waybill_engine.new_job import NewJob
from waybill_engine.shelf import unshelve_family

if TYPE_CHECKING:
    from waybill.db.database import Connection

# For a parent that was just inserted, and that nobody else can see yet: it waits for the children inserted after it.
_WAIT = """
UPDATE jobs
   SET state = 'scheduled', run_at = 'infinity', children = $2, pending_children = $2, progress = 0
 WHERE id = $1
"""

_LOCK_PARENT = "SELECT state, pending_children FROM jobs WHERE id = $1 FOR UPDATE"

# Only for a parent that is locked and waits.
_MORE_PENDING = """
UPDATE jobs
   SET children = children + $2, pending_children = pending_children + $3, updated_at = now(),
       progress = 1 - (pending_children + $3)::real / (children + $2)
 WHERE id = $1
"""

# `parents` locks the parents as they are now, not as they were when the statement began: a parent that changed in the
# meantime is judged and counted down by its newest version. A parent that is parked goes on waiting for its turn.
_CHILDREN_ENDED = f"""
WITH parents AS MATERIALIZED (
    SELECT id, state, pending_children FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id DESC FOR UPDATE
), counted AS (
    UPDATE jobs
       SET pending_children = pending_children - gone.children, updated_at = now(),
           progress = 1 - (pending_children - gone.children)::real / jobs.children,
           state = CASE WHEN pending_children = gone.children AND parked_for IS NULL THEN 'queued' ELSE state END,
           run_at = CASE WHEN pending_children = gone.children AND parked_for IS NULL THEN now() ELSE run_at END
      FROM unnest($1::uuid[], $2::int[]) AS gone (parent_id, children)
     WHERE jobs.id = ANY (ARRAY(SELECT id FROM parents WHERE state = 'scheduled' AND pending_children > 0))
       AND jobs.id = gone.parent_id
    RETURNING jobs.queue, jobs.state
), ready AS (
    SELECT queue FROM counted WHERE state = 'queued'
), {ANNOUNCE_QUEUES}
SELECT queues FROM announced
"""  # noqa: S608 - made of constants

# The job itself, whatever its state, and every active job below it. OFFSET keeps the inner select from becoming a join,
# which could be turned around.
_FAMILY = """
WITH RECURSIVE family AS (
    SELECT id, parent_id, state, children, pending_children FROM jobs WHERE id = $1
     UNION ALL
    SELECT child.*
      FROM family, LATERAL (
               SELECT id, parent_id, state, children, pending_children FROM jobs
                WHERE jobs.parent_id = family.id
               OFFSET 0
           ) AS child
     WHERE family.children > 0
)
SELECT id, parent_id, state,
       pending_children > 0 OR state NOT IN ('scheduled', 'queued', 'running') AS comes_last
  FROM family
 WHERE id = $1 OR state IN ('scheduled', 'queued', 'running')
"""

# A job without children can never get any, so there is nothing below it to lock first.
_LOCK_ALONE = "SELECT id, parent_id, state FROM jobs WHERE id = $1 AND children = 0 FOR UPDATE"

_LOCK_IN_ORDER = "SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE"
_LOCK_YOUNGEST_FIRST = "SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id DESC FOR UPDATE"

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Family:
    parent: Enqueued
    children: Sequence[Enqueued]
    """In the order given; empty when the parent existed already. The parent waits only for those that were created."""


@dataclass(frozen=True, slots=True)
class Member:
    id: uuid.UUID
    parent_id: uuid.UUID | None
    state: State


class _ChangedMeanwhileError(Exception):
    """The family grew or was purged before it was locked."""


async def enqueue_family(
    on: Connection | AsyncSession, parent: NewJob, children: Sequence[NewJob], *, within: uuid.UUID | None = None
) -> Family:
    """Enqueue children and a parent that runs when all of them have ended, in the caller's transaction.

    If the parent's unique key is taken, nothing is created. Children whose unique keys are taken are not created and
    not waited for; a parent without any children left is queued at once. `within` makes the parent itself a child of a
    job that still waits for its children.
    """
    if parent.delay or parent.run_at is not None:
        raise Refused("A parent runs when its children have ended, so it cannot have a delay or a run_at.")
    connection = await driver(on) if isinstance(on, AsyncSession) else on
    async with connection.transaction():
        (first,) = await insert(connection, [parent], parent_id=within)
        if not first.created:
            return Family(first, ())
        answers = await insert(connection, children, parent_id=first.id)
        if created := sum(one.created for one in answers):
            await connection.execute(_WAIT, first.id, created)
        if within is not None:
            await _join(connection, within, 1)
    return Family(first, answers)


async def add_children(
    on: Connection | AsyncSession, parent_id: uuid.UUID, children: Sequence[NewJob]
) -> list[Enqueued]:
    """Enqueue more children of a parent that still waits. Raises Conflict if it no longer waits.

    The parent stays locked until the caller's transaction ends, and its other children cannot end before that, so do
    this last.
    """
    connection = await driver(on) if isinstance(on, AsyncSession) else on
    async with connection.transaction():
        answers = await insert(connection, children, parent_id=parent_id)
        await _join(connection, parent_id, sum(one.created for one in answers))
    return answers


async def _join(connection: Connection, parent_id: uuid.UUID, count: int) -> None:
    """Have the parent wait for children that were just inserted, or undo their insertion."""
    parent = await connection.fetchrow(_LOCK_PARENT, parent_id)
    if parent is None:
        raise NotFound(f"There is no job {parent_id}.")
    if parent["pending_children"] == 0:
        raise Conflict(f"Job {parent_id} no longer waits for children: it is {parent['state']}.")
    if count:
        await connection.execute(_MORE_PENDING, parent_id, count, count)


async def await_again(connection: Connection, parent_id: uuid.UUID, children: int = 1) -> bool:
    """Children that had ended are active again: have their parent wait for them, if it still waits at all."""
    parent = await connection.fetchrow(_LOCK_PARENT, parent_id)
    if parent is None or parent["pending_children"] == 0:
        return False
    await connection.execute(_MORE_PENDING, parent_id, 0, children)
    return True


async def children_ended(connection: Connection, awaited_by: Iterable[uuid.UUID | None]) -> None:
    """Count children that have ended off the parents that waited for them.

    Call it in the transaction that ended them, after they were locked.
    """
    counted = Counter(parent_id for parent_id in awaited_by if parent_id is not None)
    if counted:
        await connection.execute(_CHILDREN_ENDED, list(counted), list(counted.values()))


async def lock_family(connection: Connection, job_id: uuid.UUID) -> list[Member]:
    """Lock a job, whatever its state, and every active job below it. Call it in a transaction.

    Nothing below can become active before the transaction ends, because that takes a lock on its parent. What is on
    the shelf, of it and below it, is brought back.
    """
    if alone := await connection.fetchrow(_LOCK_ALONE, job_id):
        return [_member(alone)]
    await unshelve_family(connection, job_id)
    for _ in range(_TRIES):
        seen = await connection.fetch(_FAMILY, job_id)
        if not seen:
            raise NotFound(f"There is no job {job_id}.")
        try:
            async with connection.transaction():
                await connection.execute(_LOCK_IN_ORDER, [row["id"] for row in seen if not row["comes_last"]])
                await connection.execute(_LOCK_YOUNGEST_FIRST, [row["id"] for row in seen if row["comes_last"]])
                found = await connection.fetch(_FAMILY, job_id)
                if not found or not {row["id"] for row in found} <= {row["id"] for row in seen}:
                    raise _ChangedMeanwhileError
                return [_member(row) for row in found]
        except (_ChangedMeanwhileError, asyncpg.DeadlockDetectedError):
            continue  # the savepoint has released all locks
    raise Conflict(f"The family of job {job_id} changes too fast. Try again.")


def _member(row: asyncpg.Record) -> Member:
    return Member(row["id"], row["parent_id"], State(row["state"]))
