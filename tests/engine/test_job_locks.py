"""A pipeline that changes rows of its own beside a job finds the job as it is, and nobody moves it meanwhile."""

from __future__ import annotations

import asyncio
import uuid

from support.engine import WORK, Connect, one_job, running_job, some_jobs, state, until_blocked
from waybill.db import Database
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill_engine import NewJob, State, control, enqueue_family, queries
from waybill_engine.job_locks import LockedJob, lock_job, lock_jobs, share_job


async def test_a_locked_job_says_what_it_is(hot: Connection) -> None:
    _, claimed = await running_job(hot)
    await control.cancel(hot, claimed.id)
    locked = await share_job(hot, claimed.id)
    assert locked is not None
    assert locked.stopping
    family = await enqueue_family(hot, NewJob(WORK, "acme"), [NewJob(WORK, "acme", owner="session:1")])
    child = family.children[0].id
    assert await lock_job(hot, family.parent.id) == LockedJob(State.SCHEDULED, "acme", None, stopping=False)
    assert await share_job(hot, child) == LockedJob(State.QUEUED, "session:1", family.parent.id, stopping=False)
    assert await lock_job(hot, new_id()) is None


async def test_nobody_moves_a_job_while_somebody_shares_it_and_any_number_may(
    hot: Connection, connect: Connect
) -> None:
    job = await one_job(hot)
    first, second, mover = [await connect() for _ in range(3)]
    async with first.transaction():
        await share_job(first, job)
        async with second.transaction():
            assert await share_job(second, job) is not None
        moving = asyncio.create_task(control.cancel(mover, job))
        await until_blocked(hot, mover)
        assert await state(hot, job) == State.QUEUED
    await moving
    assert await state(hot, job) == State.CANCELLED


async def test_those_that_lock_several_never_wait_for_each_other(hot: Connection, connect: Connect) -> None:
    jobs = await some_jobs(hot, 20)
    missing = new_id()

    async def lock(order: list[uuid.UUID]) -> list[uuid.UUID]:
        connection = await connect()
        async with connection.transaction():
            return await lock_jobs(connection, order)

    found = await asyncio.gather(*(lock(order) for order in (jobs, jobs[::-1], [*jobs[10:], missing, *jobs[:10]])))
    assert found == [sorted(jobs)] * 3


async def test_what_is_noted_stands_in_the_history(hot: Connection, db: Database) -> None:
    job = await one_job(hot)
    await control.note(hot, job, "stamped", "Stamped by Ana")
    async with db.transaction() as session:
        happened = await queries.history(session, await queries.get_job(session, job))
    assert [(one.event, one.detail) for one in happened][1:] == [("stamped", {"message": "Stamped by Ana"})]
