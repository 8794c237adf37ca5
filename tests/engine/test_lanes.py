"""What cannot be claimed lies in nobody's way; what comes back to a lane is found, wherever its reader has got to."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from support.claimants import Claimant, fill, pages_touched
from support.clock import Clock
from support.engine import NO_SETTLE, TTL, WORK, Connect, failure, one_job, some_jobs, until_blocked
from waybill.db.database import Connection
from waybill_engine import ClaimedJob, NewJob
from waybill_engine.caps import set_cap
from waybill_engine.control import pause, resume, retry
from waybill_engine.enqueue import enqueue
from waybill_engine.finish import judge, released, settle
from waybill_engine.lanes import BEGINNING, MOST_LANES, Lane, LaneScan
from waybill_engine.lease import drain, renew, stop
from waybill_engine.promotion import promote_due
from waybill_engine.rescue import rescue

# The cost of finding one job: pages touched, in all tables and indexes


async def claimant(connection: Connection) -> Claimant:
    return await Claimant.start(
        connection,
        queues=("paused", "default"),
        kinds=("work", "blocked", "capped"),
        dependencies={"blocked": ("gateway",)},
    )


async def cost_of_claiming(worker: Claimant, *, claims: int = 1) -> tuple[int, list[ClaimedJob]]:
    async def look_and_claim() -> list[ClaimedJob]:
        await worker.look()
        return [claimed for _ in range(claims) for claimed in await worker.claim(10)]

    return await pages_touched(worker.connection, look_and_claim)


@pytest.fixture
async def usual(hot: Connection) -> int:
    """What it costs to look for and claim a job that is alone in the world. From here on nobody vacuums."""
    await hot.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
    worker = await claimant(hot)
    for _ in range(3):  # at first there is more to read than pages of tables
        await one_job(hot)
        cost, claimed_jobs = await cost_of_claiming(worker)
        assert len(claimed_jobs) == 1
    await stop(hot, worker.id)
    await hot.execute("TRUNCATE jobs, job_events")
    await hot.execute("ALTER TABLE jobs SET UNLOGGED")  # fills faster
    return cost


@pytest.mark.parametrize(
    "many", [40_000, pytest.param(1_000_000, marks=[pytest.mark.heavy, pytest.mark.timeout(1800)])]
)
async def test_what_cannot_be_claimed_lies_in_nobodys_way(hot: Connection, usual: int, many: int) -> None:
    await fill(hot, many, state="scheduled")
    await fill(hot, many, queue="paused")
    await fill(hot, many, kind="blocked")
    await fill(hot, many, kind="unheard_of")
    await fill(hot, many, tenant="capped")
    await pause(hot, "paused")
    await hot.execute("INSERT INTO breakers (name, state) VALUES ('gateway', 'open')")
    await set_cap(hot, 0, tenant="capped")
    worker = await claimant(hot)
    mine = await one_job(hot)

    cost, claimed_jobs = await cost_of_claiming(worker, claims=3)
    assert [claimed.id for claimed in claimed_jobs] == [mine]
    # Trees that are a level or two higher, three claims instead of one, two more lanes, and a cap to count.
    assert cost <= 3 * usual + 100


async def test_a_thousand_lanes_behind_one_full_cap_cost_one_look_at_the_cap(hot: Connection, usual: int) -> None:
    await fill(hot, 50_000, tenant="t", tenants=1_000, kind="capped")
    await set_cap(hot, 0, kind="capped")
    worker = await claimant(hot)
    assert len(worker.fair_share) == 1_000
    mine = (await enqueue(hot, NewJob(WORK, "late"))).id
    worker.fair_share.announce(Lane("default", "work", 0, "late", "late"), BEGINNING)

    cost, claimed_jobs = await pages_touched(hot, lambda: worker.take(10))
    assert [claimed.id for claimed in claimed_jobs] == [mine]
    assert cost <= 2 * usual + 100

    cost, _ = await pages_touched(hot, worker.look)
    assert cost <= 10 * 1_000  # by the lane, not by the job


@pytest.mark.parametrize("most", [None, 5], ids=["without a cap", "with room under its cap"])
async def test_a_thousand_full_caps_do_not_lie_in_the_way_of_a_tenant(hot: Connection, most: int | None) -> None:
    await fill(hot, 5_000, tenant="t", tenants=1_000)
    await hot.execute("INSERT INTO caps (tenant, most) SELECT 't' || n, 0 FROM generate_series(0, 999) AS n")
    if most is not None:
        await set_cap(hot, most, tenant="free")
    worker = await claimant(hot)
    claims = []
    for _ in range(3):
        mine = (await enqueue(hot, NewJob(WORK, "free"))).id
        worker.fair_share.announce(Lane("default", "work", 0, "free", "free"), BEGINNING)
        claims.append(0)
        claimed_jobs: list[ClaimedJob] = []
        while not claimed_jobs:
            claimed_jobs = await worker.claim(10)
            claims[-1] += 1
        assert [claimed.id for claimed in claimed_jobs] == [mine]
        worker.fair_share.gates.reopen_caps(claimed_jobs)  # as every end of a run does
    assert max(claims) <= 3, f"{claims} claims to find the one job that may run"


# A reader that has got further down the lane


async def worker_with_a_start(connect: Connect) -> tuple[Claimant, list[ClaimedJob]]:
    """A worker that listens, runs the first five jobs of a lane and knows of five more behind them."""
    connection = await connect()
    await some_jobs(connection, 10)
    worker = await Claimant.start(connection)
    await worker.listen(await connect())
    return worker, await worker.take(5)


async def release(worker: Claimant, claimed: ClaimedJob) -> None:
    await settle(worker.connection, worker.id, [(claimed.id, claimed.token, released("back"))])


async def fail_and_retry(worker: Claimant, claimed: ClaimedJob) -> None:
    outcome = judge(claimed, failure(retryable=False), WORK.retry)
    await settle(worker.connection, worker.id, [(claimed.id, claimed.token, outcome)])
    await retry(worker.connection, claimed.id)


@pytest.mark.parametrize("comes_back", [release, fail_and_retry])
async def test_a_job_that_comes_back_is_found_by_the_look_its_announcement_asks_for(
    connect: Connect, comes_back: Callable[[Claimant, ClaimedJob], Awaitable[None]]
) -> None:
    worker, running = await worker_with_a_start(connect)
    await worker.hears_of(comes_back(worker, running[1]))
    assert worker.told_to_look
    await worker.look()
    assert [claimed.id for claimed in await worker.take(1)] == [running[1].id]


async def test_jobs_of_a_worker_that_stopped_or_was_killed_while_stopping_are_found_likewise(
    connect: Connect, clock: Clock
) -> None:
    connection = await connect()
    jobs = await some_jobs(connection, 10)
    leaving, killed, worker = [await Claimant.start(connection) for _ in range(3)]
    await worker.listen(await connect())
    await leaving.take(2)
    await killed.take(2)
    assert [claimed.id for claimed in await worker.take(2)] == jobs[4:6]

    await worker.hears_of(stop(connection, leaving.id))
    await worker.look()
    assert [claimed.id for claimed in await worker.take(2)] == jobs[:2]

    await drain(connection, killed.id)
    await clock.forward(TTL + 1)
    await renew(connection, worker.id, TTL)
    await worker.hears_of(rescue(connection, settle_time=NO_SETTLE))
    await worker.look()
    assert [claimed.id for claimed in await worker.take(2)] == jobs[2:4]


async def test_a_retry_is_found_at_once_when_it_is_due(connect: Connect, clock: Clock) -> None:
    worker, running = await worker_with_a_start(connect)
    outcome = judge(running[1], failure(), WORK.retry)
    await settle(worker.connection, worker.id, [(running[1].id, running[1].token, outcome)])
    await clock.forward(11)
    await worker.hears_of(promote_due(worker.connection))
    assert not worker.told_to_look
    assert [claimed.id for claimed in await worker.take(1)] == [running[1].id]


async def test_jobs_of_a_long_transaction_are_found_at_once_when_it_commits(connect: Connect) -> None:
    slow = await connect()
    transaction = slow.transaction()
    await transaction.start()
    late = (await enqueue(slow, NewJob(WORK, "acme"))).id
    worker, running = await worker_with_a_start(connect)
    assert late < running[0].id
    await worker.hears_of(transaction.commit())
    assert not worker.told_to_look
    assert [claimed.id for claimed in await worker.take(1)] == [late]


async def test_what_nobody_announced_is_found_by_the_next_look(connect: Connect) -> None:
    worker, running = await worker_with_a_start(connect)
    await release(worker, running[0])  # heard or not, nobody acts on it
    later = await worker.take(1)
    assert later[0].id > running[-1].id
    await worker.look()
    assert running[0].id in [claimed.id for claimed in await worker.take(1)]


async def test_a_queue_that_was_paused_during_a_claim_is_found_again_when_it_is_resumed(connect: Connect) -> None:
    worker, _ = await worker_with_a_start(connect)
    await pause(worker.connection, "default")
    assert await worker.take(10) == []
    await worker.hears_of(resume(worker.connection, "default"))
    await worker.look()
    assert len(await worker.take(10)) == 5


async def test_a_worker_whose_lease_had_run_out_finds_everything_after_the_next_look(
    connect: Connect, clock: Clock
) -> None:
    worker, _ = await worker_with_a_start(connect)
    await clock.forward(TTL + 1)
    assert await worker.take(10) == []
    worker = await Claimant.start(worker.connection)
    assert len(await worker.take(10)) == 5


async def test_a_lane_somebody_announced_is_not_forgotten_by_a_look_that_cannot_see_that_far(connect: Connect) -> None:
    connection = await connect()
    await fill(connection, MOST_LANES + 1, tenant="t", tenants=MOST_LANES + 1)
    worker = await Claimant.start(connection)
    await worker.listen(await connect())
    last = (await worker.hears_of(enqueue(connection, NewJob(WORK, "zz")))).id
    await worker.look()
    assert last in [claimed.id for claimed in await worker.claim(10)]


async def test_a_look_costs_no_more_with_more_tenants_and_overlooks_none(hot: Connection) -> None:
    await fill(hot, 2 * MOST_LANES + 500, tenant="t", tenants=2 * MOST_LANES + 500)
    await fill(hot, 3, tenant="urgent", tenants=3, priority=5)
    await fill(hot, 2, tenant="other", tenants=2, kind="other")
    scan = LaneScan(["default"], ["work", "other"])
    seen: list[Lane] = []
    costs = []
    for _ in range(3):
        cost, (lanes, _) = await pages_touched(hot, lambda: scan.look(hot))
        assert len(lanes) <= MOST_LANES
        costs.append(cost)
        seen += lanes
    assert scan.begins_anew
    assert not scan.complete, "it took several looks"
    assert len(seen) == len(set(seen)) == 2 * MOST_LANES + 505
    assert {lane.tenant for lane in seen[:6]} >= {"urgent0", "urgent1", "urgent2", "other0"}, "the highest come first"
    assert max(costs) <= 10 * MOST_LANES

    again, _ = await scan.look(hot)
    assert list(again)[:5] == seen[:5]


async def test_a_look_that_sees_everything_is_complete(hot: Connection) -> None:
    scan = LaneScan(["default"], ["work"])
    for tenants in (3, 1, 0):
        await hot.execute("DELETE FROM jobs")
        if tenants:
            await fill(hot, tenants, tenant="t", tenants=tenants)
        lanes, _ = await scan.look(hot)
        assert (len(lanes), scan.complete, scan.begins_anew) == (tenants, True, True)


# While a claim is under way


@asynccontextmanager
async def claim_under_way(worker: Claimant, other: Connection) -> AsyncIterator[asyncio.Task[list[ClaimedJob]]]:
    """A claim that sees what was there when it began, and comes back when the block is left."""
    async with other.transaction():
        await other.execute("SELECT FROM workers WHERE id = $1 FOR UPDATE", worker.id)
        claiming = asyncio.create_task(worker.claim(10))
        await until_blocked(other, worker.connection)
        yield claiming


async def test_a_job_announced_while_a_claim_finds_its_lane_empty_is_found_by_the_next(connect: Connect) -> None:
    worker, _ = await worker_with_a_start(connect)
    other, enqueuing = await connect(), await connect()
    assert len(await worker.claim(5)) == 5  # all there is; the worker does not know that yet
    async with claim_under_way(worker, other) as claiming:
        new = (await worker.hears_of(enqueue(enqueuing, NewJob(WORK, "acme")))).id
    assert await claiming == []
    assert [claimed.id for claimed in await worker.claim(10)] == [new]


async def test_an_older_job_announced_while_a_claim_takes_newer_ones_is_found_by_the_next(connect: Connect) -> None:
    older = NewJob(WORK, "acme")
    worker, _ = await worker_with_a_start(connect)
    other, enqueuing = await connect(), await connect()
    async with claim_under_way(worker, other) as claiming:
        await worker.hears_of(enqueue(enqueuing, older))
    assert len(await claiming) == 5
    assert not worker.told_to_look
    assert [claimed.id for claimed in await worker.claim(10)] == [older.id]


async def test_a_job_that_a_look_finds_while_a_claim_takes_newer_ones_is_found_by_the_next(connect: Connect) -> None:
    older = NewJob(WORK, "acme")
    worker, _ = await worker_with_a_start(connect)
    other, looking = await connect(), Claimant(await connect(), worker.worker, worker.fair_share)
    async with claim_under_way(worker, other) as claiming:
        await enqueue(looking.connection, older)
        await looking.look()
    assert len(await claiming) == 5
    found: list[uuid.UUID] = [claimed.id for claimed in await worker.claim(10)]
    assert found == [older.id]
