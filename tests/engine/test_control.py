"""What a person may do to jobs and queues does what it says, or says why not."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from support.clock import Clock
from support.engine import (
    WORK,
    Connect,
    events,
    failure,
    one_job,
    row,
    running_job,
    start_worker,
    state,
    take,
    until_blocked,
)
from waybill.db.database import Connection
from waybill.errors import Conflict, NotFound
from waybill.ids import new_id
from waybill_engine import NewJob, State, Unique, enqueue
from waybill_engine.control import cancel, pause, resume, retry
from waybill_engine.finish import judge, settle, succeed
from waybill_engine.lease import holdings
from waybill_engine.models import FINAL

ALL_FINAL = tuple(FINAL)


async def failed_job(connection: Connection, *, key: str | None = None) -> uuid.UUID:
    worker, claimed = await running_job(connection, unique=Unique(key) if key else None)
    await settle(
        connection, worker.id, [(claimed.id, claimed.token, judge(claimed, failure(retryable=False), WORK.retry))]
    )
    return claimed.id


async def dead_job(connection: Connection, *, key: str | None = None) -> uuid.UUID:
    job_id = await failed_job(connection, key=key)
    await connection.execute("UPDATE jobs SET state = 'dead_letter', attempts = max_attempts WHERE id = $1", job_id)
    return job_id


# Cancel


@pytest.mark.parametrize("delay", [0.0, 60.0])
async def test_whoever_waits_is_cancelled_at_once(hot: Connection, delay: float) -> None:
    job_id = await one_job(hot, delay=delay)
    assert (await cancel(hot, job_id, "not needed")).state is State.CANCELLED
    job = await row(hot, job_id)
    assert (job["state"], job["error_code"], job["error_message"]) == ("cancelled", "CANCELLED", "not needed")
    assert job["finished_at"] is not None
    assert await events(hot, job_id) == ["cancelled"]
    assert await take(hot, await start_worker(hot)) == []


async def test_whoever_runs_is_asked_to_stop_and_its_worker_is_woken(connect: Connect) -> None:
    mine, listener = await connect(), await connect()
    worker, claimed = await running_job(mine)
    heard: asyncio.Queue[str] = asyncio.Queue()
    await listener.add_listener("waybill_control", lambda *told: heard.put_nowait(str(told[3])))
    assert (await cancel(mine, claimed.id)).state is State.RUNNING
    assert await asyncio.wait_for(heard.get(), 10) == str(worker.id)
    assert await state(mine, claimed.id) is State.RUNNING
    assert (await holdings(mine, worker.id)).stop == {claimed.id}


async def test_what_has_ended_cannot_be_cancelled(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    await succeed(hot, worker.id, [(claimed.id, claimed.token)])
    before = await row(hot, claimed.id)
    with pytest.raises(Conflict, match="succeeded"):
        await cancel(hot, claimed.id)
    assert await row(hot, claimed.id) == before
    assert await events(hot, claimed.id) == ["succeeded"]


async def test_a_job_that_is_not_there_is_not_found(hot: Connection) -> None:
    with pytest.raises(NotFound):
        await cancel(hot, new_id())
    with pytest.raises(NotFound):
        await retry(hot, new_id())


async def test_a_cancel_that_waited_for_the_finish_says_it_came_too_late(connect: Connect) -> None:
    finishing, cancelling = await connect(), await connect()
    worker, claimed = await running_job(finishing)
    async with finishing.transaction():
        await succeed(finishing, worker.id, [(claimed.id, claimed.token)])
        waiting = asyncio.create_task(cancel(cancelling, claimed.id))
        await until_blocked(finishing, cancelling)
    with pytest.raises(Conflict):
        await waiting
    assert await events(finishing, claimed.id) == ["succeeded"]


# Retry


async def test_a_retried_job_starts_afresh_under_a_newer_token(hot: Connection) -> None:
    job_id = await dead_job(hot)
    await retry(hot, job_id)
    job = await row(hot, job_id)
    assert (job["state"], job["attempts"], job["crashes"], job["finished_at"]) == ("queued", 0, 0, None)
    (claimed,) = await take(hot, await start_worker(hot))
    assert (claimed.id, claimed.token) == (job_id, 2)
    assert await events(hot, job_id) == ["failed", "retried"]


async def test_a_cancelled_job_that_is_retried_is_no_longer_asked_to_stop(hot: Connection) -> None:
    job_id = await one_job(hot)
    await cancel(hot, job_id)
    await retry(hot, job_id)
    worker = await start_worker(hot)
    await take(hot, worker)
    assert (await holdings(hot, worker.id)).stop == frozenset()


async def test_only_what_ended_without_success_can_be_retried(hot: Connection) -> None:
    waiting = await one_job(hot, delay=60.0)
    worker, claimed = await running_job(hot)
    for job_id in (waiting, claimed.id):
        with pytest.raises(Conflict):
            await retry(hot, job_id)
    await succeed(hot, worker.id, [(claimed.id, claimed.token)])
    with pytest.raises(Conflict, match="succeeded"):
        await retry(hot, claimed.id)


async def test_a_retry_that_would_break_a_unique_key_is_refused_and_breaks_nothing_else(hot: Connection) -> None:
    ended = await failed_job(hot, key="k")
    active = await enqueue(hot, NewJob(WORK, "acme", unique=Unique("k")))
    async with hot.transaction():
        with pytest.raises(Conflict):
            await retry(hot, ended)
        assert await hot.fetchval("SELECT 1") == 1, "the caller's transaction is still good"
    assert await state(hot, ended) is State.FAILED
    assert await events(hot, ended) == ["failed"]
    await cancel(hot, active.id)
    await retry(hot, ended)
    assert await state(hot, ended) is State.QUEUED


async def test_a_retry_that_waited_for_the_failure_retries_it(connect: Connect) -> None:
    """The row it saw first was still running; the row it gets has ended."""
    failing, retrying = await connect(), await connect()
    worker, claimed = await running_job(failing)
    async with failing.transaction():
        await settle(
            failing, worker.id, [(claimed.id, claimed.token, judge(claimed, failure(retryable=False), WORK.retry))]
        )
        waiting = asyncio.create_task(retry(retrying, claimed.id))
        await until_blocked(failing, retrying)
    await waiting
    assert await state(failing, claimed.id) is State.QUEUED
    assert await events(failing, claimed.id) == ["failed", "retried"]


async def test_a_cancel_that_waited_for_a_failure_keeps_it_from_being_tried_again(connect: Connect) -> None:
    failing, cancelling = await connect(), await connect()
    worker, claimed = await running_job(failing)
    async with failing.transaction():
        await settle(failing, worker.id, [(claimed.id, claimed.token, judge(claimed, failure(), WORK.retry))])
        waiting = asyncio.create_task(cancel(cancelling, claimed.id))
        await until_blocked(failing, cancelling)
    assert (await waiting).state is State.CANCELLED
    assert await state(failing, claimed.id) is State.CANCELLED
    assert await events(failing, claimed.id) == ["retry_scheduled", "cancelled"]


async def test_two_retries_at_once_retry_once(connect: Connect) -> None:
    connections = [await connect() for _ in range(6)]
    job_id = await dead_job(connections[0])
    answers = await asyncio.gather(*(retry(one, job_id) for one in connections), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["Conflict"] * 5 + ["State"]
    assert await events(connections[0], job_id) == ["failed", "retried"]


# Pause


async def test_pausing_twice_keeps_the_first_time_and_the_last_reason(hot: Connection, clock: Clock) -> None:
    await pause(hot, "default", "one")
    first = await hot.fetchrow("SELECT * FROM queues")
    await clock.forward(10)
    await pause(hot, "default", "two")
    second = await hot.fetchrow("SELECT * FROM queues")
    assert first is not None
    assert second is not None
    assert (second["paused_at"], second["paused_reason"]) == (first["paused_at"], "two")


async def test_resuming_says_whether_there_was_anything_to_resume_and_tells_the_workers(connect: Connect) -> None:
    mine, listener = await connect(), await connect()
    heard: asyncio.Queue[str] = asyncio.Queue()
    await listener.add_listener("waybill_jobs", lambda *told: heard.put_nowait(str(told[3])))
    assert not await resume(mine, "default")
    await pause(mine, "default")
    assert await resume(mine, "default")
    assert await asyncio.wait_for(heard.get(), 10) == "default"
    assert not await resume(mine, "default")


async def test_what_runs_in_a_paused_queue_goes_on(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    await pause(hot, "default")
    assert await succeed(hot, worker.id, [(claimed.id, claimed.token)]) == {claimed.id}
