"""Thousands of caps cost a claim no more than a few, because it looks up only those that limit what it takes."""

from __future__ import annotations

import statistics

import pytest

from support.claimants import Claimant, fill, pages_touched
from support.engine import WORK, count, start_worker
from waybill.db.database import Connection
from waybill_engine import NewJob
from waybill_engine.caps import remove_cap, set_cap
from waybill_engine.enqueue import enqueue
from waybill_engine.finish import succeed
from waybill_engine.lanes import BEGINNING, Lane, LaneScan
from waybill_engine.rates import remove_rate, set_rate
from waybill_engine.rules import Pace

TENANTS = 50
WORKERS = 20

_CAP_TENANTS = "INSERT INTO caps (tenant, most) SELECT 't' || n, $2 FROM generate_series(0, $1::int - 1) AS n"

_RUN_ELSEWHERE = """
UPDATE jobs SET state = 'running', lease_owner = $1, lease_token = 1
 WHERE id IN (SELECT id FROM jobs WHERE state = 'queued' LIMIT 10)
"""


async def cap_tenants(connection: Connection, tenants: int, most: int) -> None:
    await connection.execute("DELETE FROM caps")
    await connection.execute(_CAP_TENANTS, tenants, most)
    await connection.execute("VACUUM ANALYZE caps")


async def cost(worker: Claimant, limit: int) -> float:
    """The pages that one claim touches, as a median."""
    spent = []
    for _ in range(15):
        pages, claimed = await pages_touched(worker.connection, lambda: worker.claim(limit))
        assert len(claimed) == limit
        await succeed(worker.connection, worker.id, [(one.id, one.token) for one in claimed])
        spent.append(pages)
    return statistics.median(spent)


@pytest.mark.parametrize("limit", [1, 10])
async def test_five_thousand_caps_cost_a_claim_no_more_than_fifty(hot: Connection, limit: int) -> None:
    await hot.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
    await fill(hot, 2_000, tenant="t", tenants=TENANTS)
    for _ in range(WORKERS):
        other = await start_worker(hot, kinds=("work",))
        await hot.execute(_RUN_ELSEWHERE, other.id)
    worker = await Claimant.start(hot)
    await cap_tenants(hot, TENANTS, 1000)
    await worker.look()
    few = await cost(worker, limit)
    await cap_tenants(hot, 100 * TENANTS, 1000)
    await worker.look()
    assert await cost(worker, limit) <= 1.5 * few


async def test_caps_on_others_cost_a_claim_that_is_not_capped_next_to_nothing(hot: Connection) -> None:
    await hot.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
    await fill(hot, 2_000, tenant="free", tenants=TENANTS)
    worker = await Claimant.start(hot)
    without = await cost(worker, 10)
    await cap_tenants(hot, 5_000, 1)
    await worker.look()
    # Ten lanes, with a look-up of two or three pages for each of the three caps that they might have.
    assert await cost(worker, 10) <= without + 10 * 3 * 3


async def test_a_look_brings_only_the_caps_of_lanes_that_have_jobs(hot: Connection) -> None:
    await fill(hot, 10, tenant="t", tenants=2)
    await cap_tenants(hot, 5_000, 1)
    await set_cap(hot, 7, kind="work")
    await set_cap(hot, 8, kind="other")
    await set_cap(hot, 9, tenant="t1", kind="work")
    _, rules = await LaneScan(["default"], ["work", "other"]).look(hot)
    assert {(cap.tenant, cap.kind, cap.most) for cap in rules.caps} == {
        ("t0", None, 1),
        ("t1", None, 1),
        (None, "work", 7),
        ("t1", "work", 9),
    }
    assert rules.more
    await hot.execute("DELETE FROM caps WHERE tenant NOT IN ('t0', 't1') OR kind = 'other'")
    assert not (await LaneScan(["default"], ["work", "other"]).look(hot))[1].more


async def test_a_look_at_some_lanes_keeps_the_limits_of_those_that_earlier_looks_found(hot: Connection) -> None:
    await fill(hot, 6, tenant="t", tenants=6)
    await cap_tenants(hot, 6, 1)
    await set_rate(hot, Pace(5, 1), tenant="t0")
    scan = LaneScan(["default"], ["work"])

    async def known() -> tuple[set[str | None], list[str | None]]:
        _, rules = await scan.look(hot, most=4)
        return {cap.tenant for cap in rules.caps}, [rate.tenant for rate in rules.rates]

    everybody = {f"t{n}" for n in range(6)}
    assert await known() == ({"t0", "t1", "t2", "t3"}, ["t0"])
    assert await known() == (everybody, ["t0"])
    await remove_cap(hot, tenant="t5")
    await remove_rate(hot, tenant="t0")
    assert await known() == (everybody, ["t0"])  # it does no harm: a claim asks what the cap is now
    assert await known() == (everybody - {"t5"}, [])
    scan.restart()
    assert await known() == (everybody - {"t5"}, [])


async def test_a_lane_behind_a_cap_that_its_worker_never_heard_of_is_claimed_at_once(hot: Connection) -> None:
    """The look before the announcement brought no cap of this tenant, because it had no jobs then."""
    await cap_tenants(hot, 10, 2)
    worker = await Claimant.start(hot)
    for _ in range(5):
        await enqueue(hot, NewJob(WORK, "t3"))
        worker.fair_share.announce(Lane("default", "work", 0, "t3", "t3"), BEGINNING)
    assert len(await worker.take(5)) == 2
    assert await count(hot, "state = 'running'") == 2


async def test_a_claim_that_another_worker_won_leaves_no_empty_lane(hot: Connection) -> None:
    await cap_tenants(hot, 10, 2)
    worker, faster = [await Claimant.start(hot) for _ in range(2)]
    job = await enqueue(hot, NewJob(WORK, "free"))
    for one in (worker, faster):
        one.fair_share.announce(Lane("default", "work", 0, "free", "free"), BEGINNING)
    assert [claimed.id for claimed in await faster.take(5)] == [job.id]
    assert await worker.take(5) == []
    assert len(worker.fair_share) == 0
