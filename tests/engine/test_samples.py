"""One process takes the sample that all of them read, and it says what is there."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from support.clock import Clock
from support.engine import OTHER, WORK, Connect, some_jobs, start_worker, take
from waybill.db.database import Connection
from waybill_engine import breaker, samples
from waybill_engine.breaker_control import trip
from waybill_engine.caps import set_cap
from waybill_engine.rates import set_rate
from waybill_engine.rules import Pace
from waybill_engine.samples import LimitSample, depths, newest, take_if_due

INTERVAL = 15.0


async def sample(hot: Connection) -> samples.Sample:
    """Take a sample whatever the age of the last one, and read it."""
    assert await take_if_due(hot, 0.0)
    found = await newest(hot)
    assert found is not None
    return found


async def test_there_is_no_sample_before_the_first(hot: Connection) -> None:
    assert await newest(hot) is None


async def test_a_sample_says_what_waits_and_runs_by_kind_and_tenant(hot: Connection) -> None:
    worker = await start_worker(hot, kinds=["work"])
    await breaker.register_kinds(hot, {"work": [], "idle": []})
    await some_jobs(hot, 3, WORK)
    await some_jobs(hot, 2, OTHER, tenant="globex")
    await hot.execute("UPDATE jobs SET run_at = now() - interval '90 seconds' WHERE kind = 'other'")
    await take(hot, worker, 2)
    await hot.execute(
        "UPDATE jobs SET state = 'dead_letter', finished_at = now() WHERE id = (SELECT min(id::text)::uuid FROM jobs"
        " WHERE kind = 'other')"
    )

    found = await sample(hot)

    assert [(one.kind, one.queued, one.scheduled, one.running, one.dead_letter) for one in found.kinds] == [
        ("idle", 0, 0, 0, 0),
        ("other", 1, 0, 0, 1),
        ("work", 1, 0, 2, 0),
    ]
    by_kind = {one.kind: one for one in found.kinds}
    assert by_kind["idle"].oldest_runnable_at is None
    oldest = by_kind["other"].oldest_runnable_at
    assert oldest is not None
    assert found.taken_at - oldest >= timedelta(seconds=90)
    assert {(one.tenant, one.queued, one.running, one.dead_letter) for one in found.tenants} == {
        ("acme", 1, 2, 0),
        ("globex", 1, 0, 1),
    }
    first = await hot.fetchval("SELECT id FROM jobs WHERE kind = 'other' AND state = 'queued'")
    assert found.waiting_longest[0] == first
    assert len(found.waiting_longest) == 2, "one of each lane"
    assert found.workers == {"active": 1}
    assert not found.cut_off
    (depth,) = await depths(hot, timedelta(hours=1))
    assert (depth.queued, depth.scheduled, depth.running, depth.dead_letter) == (2, 0, 2, 1)


async def test_a_sample_knows_breakers_limits_and_workers_that_are_silent(hot: Connection, clock: Clock) -> None:
    await breaker.register_kinds(hot, {"work": ["gateway", "storage"]})
    await trip(hot, "gateway", "Maintenance.")
    silent = await start_worker(hot, ttl=1.0)
    await clock.forward(2.0)
    worker = await start_worker(hot)
    await set_cap(hot, 1, kind="work")
    await set_cap(hot, 5, tenant="acme")
    await set_rate(hot, Pace(1, 60.0), kind="other")
    await some_jobs(hot, 1, WORK)
    await some_jobs(hot, 1, OTHER)
    await hot.execute("DELETE FROM breakers")
    await take(hot, worker)
    await trip(hot, "gateway", "Maintenance.")

    found = await sample(hot)

    assert silent.id != worker.id
    assert found.workers == {"active": 1, "expired": 1}
    assert found.breakers == {"gateway": "open", "storage": "closed"}
    assert found.limits == [
        LimitSample("*", "cap", reached=False),
        LimitSample("other", "rate", reached=True),
        LimitSample("work", "cap", reached=True),
    ]


async def test_many_replicas_take_one_sample(connect: Connect) -> None:
    replicas = [await connect() for _ in range(6)]

    taken = await asyncio.gather(*(take_if_due(replica, INTERVAL) for replica in replicas))

    assert taken.count(True) == 1
    assert await replicas[0].fetchval("SELECT count(*) FROM samples") == 1
    assert not await take_if_due(replicas[1], INTERVAL)


async def test_a_sampler_that_is_killed_keeps_nobody_from_sampling(hot: Connection, connect: Connect) -> None:
    victim, other = await connect(), await connect()
    async with other.transaction():  # nobody can write a sample, so the victim waits in the middle of its own
        await other.execute("LOCK TABLE samples IN SHARE MODE")
        taking = asyncio.create_task(take_if_due(victim, INTERVAL))
        pid = victim.get_server_pid()
        while not await hot.fetchval("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $1", pid):
            await asyncio.sleep(0.01)
        assert not await take_if_due(hot, INTERVAL), "one is at it, and the others do not wait"
        await hot.execute("SELECT pg_terminate_backend($1, 5000)", pid)
    with pytest.raises(Exception, match=r"terminat|connection"):
        await taking

    assert await take_if_due(hot, INTERVAL)


async def test_samples_follow_the_clock_and_leave_after_a_day(hot: Connection, clock: Clock) -> None:
    await some_jobs(hot, 1, WORK)
    assert await take_if_due(hot, INTERVAL)
    await clock.forward(14.0)
    assert await take_if_due(hot, INTERVAL), "a replica that looks every 15 s must not find it a moment too young"
    await clock.forward(3600.0)
    assert await take_if_due(hot, INTERVAL)
    await clock.forward(86_000.0)
    assert await take_if_due(hot, INTERVAL)

    kept = "SELECT count(*) FROM samples", "SELECT count(DISTINCT taken_at) FROM kind_samples"
    assert [await hot.fetchval(one) for one in kept] == [2, 2]
    assert await hot.fetchval("SELECT count(*) FROM samples WHERE tenants IS NOT NULL") == 1

    await clock.forward(-500.0)  # somebody put it right
    assert await take_if_due(hot, INTERVAL)
    found = await newest(hot)
    assert found is not None
    assert found.age < 60.0


async def test_counting_ends_at_a_bound(hot: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST_COUNTED", 5)
    await some_jobs(hot, 7, WORK)
    await some_jobs(hot, 2, OTHER)

    found = await sample(hot)

    assert {one.kind: one.queued for one in found.kinds} == {"other": 2, "work": 5}
    assert found.cut_off == {"queued"}
