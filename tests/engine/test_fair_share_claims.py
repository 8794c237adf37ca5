"""Tenants share fairly through Postgres, with workers that live on and know only what they heard.

The bounds are those of `test_fair_share`: with claims of at most L jobs, a process gives two tenants that both have
jobs waiting work that differs, each divided by its weight, by at most L x (largest cost / weight). Processes add up.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable

import pytest

from support.claimants import Claimant, fill
from support.engine import OTHER, WORK, Connect, one_job
from waybill.db.database import Connection
from waybill_engine import ClaimedJob, NewJob
from waybill_engine.caps import remove_cap, set_cap
from waybill_engine.control import hand_over
from waybill_engine.enqueue import enqueue_many
from waybill_engine.finish import succeed

FEW = 2
"""Jobs of others, at most, that each process claims before the single job of a tenant that has just come."""


async def weigh(connection: Connection, **weights: float) -> None:
    await connection.executemany(
        "INSERT INTO tenants (name, weight) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET weight = excluded.weight",
        list(weights.items()),
    )


async def claimants(connect: Connect, count: int) -> list[Claimant]:
    return [await Claimant.start(await connect(), seed=number) for number in range(count)]


async def announce_to(workers: list[Claimant], connection: Connection, *jobs: NewJob) -> None:
    """Enqueue jobs; these workers hear of it, the others do not."""
    listening = [await worker.listen(connection) for worker in workers]
    first, *_ = workers
    await first.hears_of(enqueue_many(connection, jobs))
    for stop in listening:
        await stop()


def work_of(claimed_jobs: list[ClaimedJob]) -> Counter[str]:
    work: Counter[str] = Counter()
    for claimed in claimed_jobs:
        work[claimed.tenant] += claimed.cost
    return work


# One file behind a hundred thousand


async def test_one_file_behind_a_hundred_thousand_is_claimed_among_the_next_few(connect: Connect) -> None:
    admin = await connect()
    await fill(admin, 100_000, tenant="a")
    first, *others = await claimants(connect, 4)
    for _ in range(10):
        assert {claimed.tenant for claimed in await first.take(20)} == {"a"}

    await announce_to([first], admin, NewJob(WORK, "b"))
    next_few = [claimed.tenant for _ in range(FEW + 1) for claimed in await first.take(1)]
    assert "b" in next_few

    # With several, each as far as it is, and told or not.
    for number, worker in enumerate(others):
        await worker.take(10 * number)
    await announce_to(others[:1], admin, NewJob(WORK, "c"))
    for worker in others[1:]:
        await worker.look()
    took = [[claimed.tenant for claimed in await worker.take(FEW + 1)] for worker in others]
    assert sum(tenants.count("c") for tenants in took) == 1

    # And of the same tenant, one of another kind.
    await announce_to([first], admin, NewJob(OTHER, "a"))
    next_few = [claimed.kind for _ in range(FEW + 1) for claimed in await first.take(1)]
    assert "other" in next_few


# By weight and work

COSTS: dict[str, Callable[[random.Random], int]] = {
    "a": lambda chance: chance.randint(1, 39),
    "b": lambda chance: min(int(10 / (1 - chance.random()) ** 0.5), 200),
    "c": lambda chance: 60 if chance.random() < 0.1 else 5,
}
"""Three sorts of documents: even, with a long tail, and either small or big."""
WEIGHTS = {"a": 1.0, "b": 2.0, "c": 5.0}


@pytest.mark.parametrize("batches", [(20,), (7, 20, 50)], ids=["one worker", "three workers"])
async def test_weights_of_1_2_5_share_the_work_within_5_percent_over_ten_thousand_jobs(
    connect: Connect, batches: tuple[int, ...]
) -> None:
    admin = await connect()
    await weigh(admin, **WEIGHTS)
    chance = random.Random(len(batches))
    for tenant, cost in COSTS.items():
        await fill(admin, 9000, tenant=tenant, costs=[cost(chance) for _ in range(9000)])
    workers = await claimants(connect, len(batches))
    taken: list[ClaimedJob] = []

    async def claim_along(worker: Claimant, batch: int) -> None:
        while len(taken) < 10_000:
            taken.extend(await worker.claim(chance.randint(1, batch)))

    await asyncio.gather(*map(claim_along, workers, batches))

    left = {row["tenant"] for row in await admin.fetch("SELECT DISTINCT tenant FROM jobs WHERE state = 'queued'")}
    assert left == WEIGHTS.keys(), "somebody ran out of jobs, and the test of its point"
    work = work_of(taken)
    for tenant, weight in WEIGHTS.items():
        assert work[tenant] / work.total() == pytest.approx(weight / 8, rel=0.05)


async def test_of_five_hundred_tenants_none_is_further_behind_than_one_claim_of_each_worker(connect: Connect) -> None:
    admin = await connect()
    chance = random.Random(5)
    weights = {f"t{number}": chance.choice([1.0, 2.0, 4.0]) for number in range(500)}
    await weigh(admin, **weights)
    await fill(admin, 500 * 40, tenant="t", tenants=500, costs=[chance.randint(1, 9) for _ in range(997)])
    workers = await claimants(connect, 2)
    batch, dearest, lightest = 25, 9, 1.0
    # Each process shares out by itself, and starts somewhere inside the first job of each tenant.
    bound = sum(batch * dearest / lightest + 1 / lightest for _ in workers)
    work: Counter[str] = Counter()
    for _ in range(80):
        for worker in workers:
            work += work_of(await worker.claim(batch))
        had = [work[tenant] / weight for tenant, weight in weights.items()]
        assert max(had) - min(had) <= bound
    assert min(had) > 0


# Rules that change


async def test_a_new_weight_counts_once_the_worker_has_looked(connect: Connect) -> None:
    admin = await connect()
    for tenant in "ab":
        await fill(admin, 1000, tenant=tenant)
    (worker,) = await claimants(connect, 1)
    before = work_of(await worker.take(200))
    assert abs(before["a"] - before["b"]) <= 2
    await weigh(admin, b=3.0)
    await worker.look()
    after = work_of(await worker.take(200))
    assert after["b"] == pytest.approx(150, abs=5)


async def test_a_tenant_held_back_by_a_cap_has_its_share_afterwards_and_no_more(connect: Connect) -> None:
    admin = await connect()
    for tenant in "ab":
        await fill(admin, 2000, tenant=tenant)
    await set_cap(admin, 0, tenant="b")
    (worker,) = await claimants(connect, 1)
    now = 0.0

    def clock() -> float:
        return now

    taken: list[ClaimedJob] = []
    while len(taken) < 1000:
        taken += await worker.claim(20, clock=clock)
        now += 0.2
    assert {claimed.tenant for claimed in taken} == {"a"}
    await remove_cap(admin, tenant="b")
    await worker.look()
    after = work_of(await worker.take(200))
    assert abs(after["a"] - after["b"]) <= 2 * 20


async def test_lower_priorities_are_served_when_the_higher_are_empty(connect: Connect) -> None:
    admin = await connect()
    await fill(admin, 50, tenant="a")
    await fill(admin, 30, tenant="b", priority=10)
    await fill(admin, 30, tenant="c", priority=10)
    (worker,) = await claimants(connect, 1)
    order = [(claimed.priority, claimed.tenant) for _ in range(11) for claimed in await worker.take(10)]
    assert [priority for priority, _ in order] == [10] * 60 + [0] * 50
    assert abs(order[:30].count((10, "b")) - 15) <= 1


async def test_a_tenant_that_finished_and_comes_again_is_neither_ahead_nor_behind(connect: Connect) -> None:
    admin = await connect()
    await fill(admin, 2000, tenant="stays")
    (worker,) = await claimants(connect, 1)
    taken: list[ClaimedJob] = []
    for _ in range(30):
        await announce_to([worker], admin, *[NewJob(WORK, "hops") for _ in range(5)])
        while True:
            claimed_jobs = await worker.take(4)
            await succeed(worker.connection, worker.id, [(claimed.id, claimed.token) for claimed in claimed_jobs])
            taken += claimed_jobs
            if not any(claimed.tenant == "hops" for claimed in claimed_jobs):
                break
    work = work_of(taken)
    assert work["hops"] == 150
    assert work["stays"] >= work["hops"] - 4


async def test_a_kind_nobody_serves_is_nobodys_turn(connect: Connect) -> None:
    admin = await connect()
    await fill(admin, 100, tenant="a", kind="unheard_of")
    mine = await one_job(admin)
    (worker,) = await claimants(connect, 1)
    assert [claimed.id for claimed in await worker.take(10)] == [mine]


# Owners below a tenant


def sessions(*names: str, jobs: int = 1) -> list[NewJob]:
    return [NewJob(WORK, "public", owner=name) for name in names for _ in range(jobs)]


@pytest.mark.parametrize("limit", [1, 4])
@pytest.mark.parametrize("how", ["one by one", "in bulk", "in sql"])
async def test_one_browsers_500_files_do_not_delay_anothers_one(connect: Connect, how: str, limit: int) -> None:
    admin = await connect()
    if how == "in bulk":
        await enqueue_many(admin, sessions("first", jobs=500))
    else:
        await fill(admin, 500, tenant="public")
        await admin.execute("UPDATE jobs SET owner = 'first'")
    (worker,) = await claimants(connect, 1)
    await worker.listen(await connect())
    await worker.take(20)
    if how == "in sql":
        call = "SELECT id FROM waybill_enqueue('work', 'public', owner => 'second', queue => 'default', "
        limits = "max_attempts => 1, max_crashes => 1, time_limit => 60)"
        mine = await worker.hears_of(admin.fetchval(call + limits))
    else:
        mine = (await worker.hears_of(enqueue_many(admin, sessions("second"))))[0].id
    order = [claimed.id for _ in range(FEW + 1) for claimed in await worker.claim(limit)]
    assert order.index(mine) <= FEW * limit


async def test_owners_take_turns_inside_their_tenants_share_and_no_tenant_gets_more_for_having_many(
    connect: Connect,
) -> None:
    admin = await connect()
    await enqueue_many(admin, sessions(*(f"session {number}" for number in range(10)), jobs=50))
    await enqueue_many(admin, [NewJob(WORK, "acme") for _ in range(400)])
    (worker,) = await claimants(connect, 1)
    taken = [claimed for _ in range(25) for claimed in await worker.claim(8)]
    tenants = Counter(claimed.tenant for claimed in taken)
    assert abs(tenants["acme"] - tenants["public"]) <= 8
    owners = Counter(claimed.owner for claimed in taken if claimed.tenant == "public")
    assert len(owners) == 10
    assert max(owners.values()) - min(owners.values()) <= 2


async def test_a_job_that_is_handed_over_waits_in_its_new_owners_lane_at_once(connect: Connect) -> None:
    admin = await connect()
    (worker,) = await claimants(connect, 1)
    await worker.listen(await connect())
    job = (await worker.hears_of(enqueue_many(admin, sessions("before"))))[0].id
    await worker.hears_of(hand_over(admin, [job], "after"))
    assert [(claimed.id, claimed.owner) for claimed in await worker.take(1)] == [(job, "after")]


# Lanes that others have emptied


async def test_a_claim_goes_on_to_the_next_lanes_where_others_were_faster(connect: Connect) -> None:
    admin = await connect()
    await enqueue_many(admin, [NewJob(WORK, f"tenant-{number:02}") for number in range(20)])
    slow, quick = await claimants(connect, 2)
    await slow.look()
    await quick.look()
    taken = [job for _ in range(9) for job in await quick.claim(2)]
    assert len(taken) == 18

    left = await slow.claim(2)

    assert len(left) == 2, "one claim went through all the lanes that were empty by then"
    assert {job.tenant for job in left}.isdisjoint(job.tenant for job in taken)


async def test_a_lane_that_a_claim_did_not_come_to_is_not_taken_for_empty(connect: Connect) -> None:
    admin = await connect()
    await enqueue_many(admin, [NewJob(WORK, f"tenant-{number}") for number in range(5) for _ in range(2)])
    (worker,) = await claimants(connect, 1)
    await worker.look()
    claimed = []
    while jobs := await worker.claim(3):
        claimed.append(len(jobs))
    assert claimed == [3, 3, 3, 1]
