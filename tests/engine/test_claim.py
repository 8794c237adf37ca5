"""A claim takes what may run now, in order, once; what may not run is not even looked at."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from support.claimants import Claimant
from support.clock import Clock
from support.engine import (
    NO_SETTLE,
    OTHER,
    TTL,
    WORK,
    Connect,
    an_hour_ahead,
    count,
    one_job,
    row,
    running_job,
    some_jobs,
    start_worker,
    state,
    take,
    take_as,
    take_isolated,
    until_blocked,
)
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill_engine import ClaimedJob, NewJob, State, enqueue, enqueue_many
from waybill_engine.control import cancel, pause, resume
from waybill_engine.explain import explain
from waybill_engine.lease import drain, holdings, renew, stop
from waybill_engine.rescue import look_for_trouble, rescue


async def test_a_claimed_job_runs_under_a_new_token(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    job = await row(hot, claimed.id)
    assert (job["state"], job["lease_owner"], job["lease_token"]) == ("running", worker.id, 1)
    assert claimed.token == 1
    assert job["started_at"] is not None
    assert await take(hot, worker) == []


async def test_higher_priority_first_then_the_oldest_of_each_lane(hot: Connection) -> None:
    expected: dict[uuid.UUID, tuple[int, str, str]] = {}
    for number in range(40):
        kind, queue, priority = (WORK, OTHER)[number % 2], ("default", "night", "bulk")[number % 3], number % 5 - 2
        expected[await one_job(hot, kind, queue=queue, priority=priority)] = (-priority, kind.name, queue)
    worker = await start_worker(hot, queues=["night", "bulk", "default"])
    taken: list[ClaimedJob] = []
    while got := await take(hot, worker, 7):
        assert len(got) == 7 or len(taken) + len(got) == 40
        taken += got
    priorities = [expected[claimed.id][0] for claimed in taken]
    assert priorities == sorted(priorities)
    for lane in set(expected.values()):
        mine = [claimed.id for claimed in taken if expected[claimed.id] == lane]
        assert mine == sorted(mine)
    assert {claimed.id for claimed in taken} == expected.keys()


@pytest.mark.parametrize("bulk", [1, 150], ids=["by INSERT", "by COPY"])
async def test_an_enqueuer_whose_clock_is_ahead_neither_loses_nor_gains_a_place(hot: Connection, bulk: int) -> None:
    worker = await start_worker(hot)
    before = await some_jobs(hot, 20)
    ahead = [NewJob(WORK, "acme", id=an_hour_ahead(new_id())) for _ in range(bulk)]
    await enqueue_many(hot, ahead)
    after = await some_jobs(hot, 400)

    explanation = await explain(hot, ahead[0].id)
    assert explanation.facts["ahead"] == 20
    order = [claimed.id for claimed in await take(hot, worker, 1000)]
    assert order == [*before, *(job.id for job in ahead), *after]


async def test_a_worker_that_has_read_on_hears_of_a_job_whose_enqueuers_clock_is_behind(connect: Connect) -> None:
    connection = await connect()
    worker = await Claimant.start(connection)
    await worker.listen(await connect())
    await worker.hears_of(some_jobs(connection, 10))
    await worker.take(5)
    behind = uuid.UUID(int=new_id().int - (3_600_000 << 80))
    await worker.hears_of(enqueue(connection, NewJob(WORK, "acme", id=behind)))
    assert [claimed.id for claimed in await worker.take(6)][-1] == behind


async def test_the_extreme_priorities_are_in_order_too(hot: Connection) -> None:
    lowest, middle, highest = [await one_job(hot, priority=priority) for priority in (-32768, 0, 32767)]
    claimed_jobs = await take(hot, await start_worker(hot))
    assert [claimed.id for claimed in claimed_jobs] == [highest, middle, lowest]


async def test_a_worker_takes_only_kinds_and_queues_it_serves(hot: Connection) -> None:
    mine = await one_job(hot, WORK)
    await one_job(hot, OTHER)
    await one_job(hot, WORK, queue="night")
    worker = await start_worker(hot, kinds=["work"])
    assert [claimed.id for claimed in await take(hot, worker)] == [mine]
    assert await count(hot, "state = 'queued'") == 2


async def test_a_lane_named_twice_is_one_lane(hot: Connection) -> None:
    jobs = await some_jobs(hot, 4)
    worker = await start_worker(hot)
    claimed_jobs = await take_as(hot, worker.id, ["default", "default"], ["work", "work"], 4)
    assert [claimed.id for claimed in claimed_jobs] == jobs


@pytest.mark.parametrize("limit", [0, 1, 5])
async def test_never_more_than_asked(hot: Connection, limit: int) -> None:
    await some_jobs(hot, 3)
    await some_jobs(hot, 3, OTHER)
    assert len(await take(hot, await start_worker(hot), limit)) == limit


async def test_nothing_to_serve_is_nothing_to_claim(hot: Connection) -> None:
    await one_job(hot)
    worker = await start_worker(hot)
    assert await take_as(hot, worker.id, [], ["work"], 5) == []
    assert await take_as(hot, worker.id, ["default"], [], 5) == []


# Who may claim


async def test_a_worker_whose_lease_ran_out_claims_nothing_until_it_renewed(hot: Connection, clock: Clock) -> None:
    job_id = await one_job(hot)
    worker = await start_worker(hot)
    await clock.forward(TTL + 1)
    assert await take(hot, worker) == []
    await renew(hot, worker.id, TTL)
    assert [claimed.id for claimed in await take(hot, worker)] == [job_id]


async def test_a_worker_that_is_draining_stopped_gone_or_unknown_claims_nothing(hot: Connection, clock: Clock) -> None:
    await one_job(hot)
    draining, stopped, gone = [await start_worker(hot) for _ in range(3)]
    await drain(hot, draining.id)
    await stop(hot, stopped.id)
    await clock.forward(TTL + 1)
    await renew(hot, draining.id, TTL)
    await rescue(hot, settle_time=NO_SETTLE)
    assert not await renew(hot, gone.id, TTL)
    for worker_id in (draining.id, stopped.id, gone.id, new_id()):
        assert await take_as(hot, worker_id, ["default"], ["work"], 5) == []
    assert await count(hot, "state = 'queued'") == 1


# What may be claimed


async def test_a_paused_queue_gives_nothing_and_holds_nothing_back(hot: Connection) -> None:
    waiting = await some_jobs(hot, 3, priority=100)
    free = await some_jobs(hot, 2, queue="night")
    worker = await start_worker(hot, queues=["default", "night"])
    await pause(hot, "default", "maintenance")
    assert [claimed.id for claimed in await take(hot, worker)] == free
    await resume(hot, "default")
    assert [claimed.id for claimed in await take(hot, worker)] == waiting


# Suspects of a crash


async def suspects_wait(connection: Connection) -> bool:
    return (await look_for_trouble(connection, ["default"], ["work"], settle_time=NO_SETTLE)).suspects


async def crash_together(connection: Connection, clock: Clock, jobs: int) -> None:
    worker = await start_worker(connection)
    assert len(await take(connection, worker, jobs)) == jobs
    await clock.forward(TTL + 1)
    await rescue(connection, settle_time=NO_SETTLE)


async def test_suspects_are_claimed_one_at_a_time_and_only_on_purpose(hot: Connection, clock: Clock) -> None:
    suspects = await some_jobs(hot, 3)
    await crash_together(hot, clock, 3)
    innocent = await one_job(hot)
    worker = await start_worker(hot)
    assert [claimed.id for claimed in await take(hot, worker)] == [innocent]
    assert await suspects_wait(hot)
    taken = [await take_isolated(hot, worker) for _ in range(4)]
    assert [[claimed.id for claimed in claimed_jobs] for claimed_jobs in taken] == [[one] for one in suspects] + [[]]
    assert all(claimed_jobs[0].isolated for claimed_jobs in taken[:3])
    assert not await suspects_wait(hot)


async def test_suspects_of_a_paused_queue_are_not_waiting_for_anybody(hot: Connection, clock: Clock) -> None:
    """A worker that makes room for a suspect it cannot have would do nothing else."""
    await some_jobs(hot, 2)
    await crash_together(hot, clock, 2)
    await pause(hot, "default")
    assert await take_isolated(hot, await start_worker(hot)) == []
    assert not await suspects_wait(hot)


# At the same time


async def test_ten_workers_claiming_at_once_never_take_the_same_job(connect: Connect) -> None:
    connections = [await connect() for _ in range(10)]
    jobs = await some_jobs(connections[0], 500)
    workers = [await start_worker(connection) for connection in connections]

    async def claim_all(number: int) -> list[ClaimedJob]:
        taken: list[ClaimedJob] = []
        while await count(connections[number], "state = 'queued'"):
            taken += await take(connections[number], workers[number], 7)
        return taken

    taken = [claimed for claimed_jobs in await asyncio.gather(*map(claim_all, range(10))) for claimed in claimed_jobs]
    assert sorted(claimed.id for claimed in taken) == jobs
    assert {claimed.token for claimed in taken} == {1}


async def test_what_a_claim_looked_at_but_did_not_take_is_there_for_the_next(connect: Connect) -> None:
    mine, other = await connect(), await connect()
    queues = [f"q{number}" for number in range(10)]
    jobs = {await one_job(mine, queue=queue) for queue in queues}
    first, second = [await start_worker(mine, queues=queues) for _ in range(2)]
    async with mine.transaction():
        (taken,) = await take(mine, first, 1)
        rest = await take(other, second, 9)
    assert {taken.id, *(claimed.id for claimed in rest)} == jobs


async def test_a_job_cancelled_while_it_is_being_claimed_is_either_cancelled_or_asked_to_stop(connect: Connect) -> None:
    claiming, cancelling = await connect(), await connect()
    worker = await start_worker(claiming)
    for _ in range(40):
        job_id = await one_job(claiming)
        claimed_jobs, result = await asyncio.gather(take(claiming, worker), cancel(cancelling, job_id))
        job = await row(claiming, job_id)
        if claimed_jobs:
            assert result.state is State.RUNNING
            assert (job["state"], job["lease_owner"]) == ("running", worker.id)
            assert job["cancel_requested_at"] is not None
        else:
            assert result.state is State.CANCELLED
            assert await state(claiming, job_id) is State.CANCELLED


async def test_a_cancel_that_waited_for_a_claim_sees_the_running_job(connect: Connect) -> None:
    claiming, cancelling = await connect(), await connect()
    worker = await start_worker(claiming)
    job_id = await one_job(claiming)
    async with claiming.transaction():
        assert await take(claiming, worker)
        waiting = asyncio.create_task(cancel(cancelling, job_id))
        await until_blocked(claiming, cancelling)
    assert (await waiting).state is State.RUNNING
    assert (await holdings(claiming, worker.id)).stop == {job_id}


async def test_a_claim_passes_by_a_job_somebody_is_changing(connect: Connect) -> None:
    changing, claiming = await connect(), await connect()
    first, second = await some_jobs(changing, 2)
    worker = await start_worker(claiming)
    async with changing.transaction():
        await cancel(changing, first)
        assert [claimed.id for claimed in await take(claiming, worker)] == [second]
    assert await take(claiming, worker) == []
    assert await state(claiming, first) is State.CANCELLED


async def test_the_last_token_is_the_end_of_one_job_not_of_its_lane(hot: Connection) -> None:
    worn_out, fine = await some_jobs(hot, 2)
    await hot.execute("UPDATE jobs SET lease_token = 2147483647 - 1 WHERE id = $1", worn_out)
    claimed_jobs = await take(hot, await start_worker(hot))
    assert {claimed.id: claimed.token for claimed in claimed_jobs} == {worn_out: 2147483647, fine: 1}
