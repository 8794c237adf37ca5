"""`Retry-After` keeps the whole fleet away, for at least a second, and calls come back gradually."""

from __future__ import annotations

import asyncio

import pytest

from support.breakers import CONVERT, CONVERTER, POLICY, breaker_events, claim_gated, converter_worker, fail, standing
from support.claimants import Claimant
from support.clock import Clock
from support.engine import Connect, one_job, some_jobs
from waybill.db.database import Connection
from waybill_engine.breaker import admit
from waybill_engine.breaker_control import list_breakers, reset
from waybill_engine.breaker_counts import CallCount, record
from waybill_engine.cooldowns import cool_down
from waybill_engine.explain import Reason, explain
from waybill_engine.finish import succeed


async def test_nobody_starts_a_job_until_it_is_over(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 5, CONVERT)
    await cool_down(hot, CONVERTER, 30, POLICY)
    assert await claim_gated(hot, worker) == []
    granted = (await admit(hot, [CONVERTER], POLICY))[CONVERTER]
    assert (granted.room, granted.since) == (0, None)
    assert granted.look_in == pytest.approx(30, abs=5)
    await clock.forward(31)
    assert len(await claim_gated(hot, worker)) >= POLICY.probes


async def test_a_worker_that_has_not_heard_of_it_claims_nothing(hot: Connection) -> None:
    """Its lanes and rules may be a moment old, so the claim asks again."""
    await one_job(hot, CONVERT)
    claimant = await Claimant.start(hot, kinds=(CONVERT.name,), dependencies={CONVERT.name: (CONVERTER,)})
    await cool_down(hot, CONVERTER, 30, POLICY)
    assert await claimant.take(10) == []


async def test_calls_come_back_a_few_at_a_time(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 3000, CONVERT)
    await cool_down(hot, CONVERTER, 5, POLICY)
    await clock.forward(5.01)
    at_once = [len(await claim_gated(hot, worker, 3000))]
    for _ in range(3):
        await clock.forward(1)
        at_once.append(len(await claim_gated(hot, worker, 3000)))
    # The seconds of a busy machine are longer than ours: what matters is that nobody gets them all.
    assert at_once[0] <= POLICY.probes * 2**4
    assert sum(at_once) <= POLICY.probes * 2**8
    await clock.forward(15)
    assert len(await claim_gated(hot, worker, 3000)) == 3000 - sum(at_once), "then nothing limits them"
    assert {job["state"] for job in await hot.fetch("SELECT state FROM jobs")} == {"running"}


async def test_a_dependency_that_is_busy_gets_more_at_once_than_one_that_is_sick(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 500, CONVERT)
    await cool_down(hot, CONVERTER, 60, POLICY)
    await record(hot, [CallCount(CONVERTER, 1, 0)], POLICY)
    await clock.forward(60.01)
    assert len(await claim_gated(hot, worker, 500)) in (16, 32, 64, 128), "eight times two, or more on a busy machine"


async def test_none_of_these_is_a_probe(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 2, CONVERT)
    await cool_down(hot, CONVERTER, 5, POLICY)
    await clock.forward(6)
    assert [claimed.probes for claimed in await claim_gated(hot, worker)] == [None, None]


@pytest.mark.parametrize(("asked", "lasts"), [(0.0, 1.0), (7.0, 7.0), (86400.0, POLICY.open_at_most)])
async def test_it_lasts_a_second_at_least_and_no_longer_than_a_breaker_stays_open(
    hot: Connection, asked: float, lasts: float
) -> None:
    await cool_down(hot, CONVERTER, asked, POLICY)
    assert (await standing(hot))["cooldown_seconds"] == lasts


async def test_asking_again_and_again_makes_it_longer_until_something_succeeds(hot: Connection, clock: Clock) -> None:
    lasted = []
    for _ in range(6):
        await cool_down(hot, CONVERTER, 0, POLICY)
        lasted.append((await standing(hot))["cooldown_seconds"])
        await clock.forward(lasted[-1] + 1)
    assert lasted == [1, 2, 4, 8, 16, 32]
    await record(hot, [CallCount(CONVERTER, 1, 0)], POLICY)
    await cool_down(hot, CONVERTER, 0, POLICY)
    assert (await standing(hot))["cooldown_seconds"] == 1


async def test_a_thousand_answers_at_once_write_the_row_once(hot: Connection, connect: Connect) -> None:
    heard: asyncio.Queue[object] = asyncio.Queue()
    listening = await connect()
    await listening.add_listener("waybill_control", lambda *said: heard.put_nowait(said[-1]))
    async with hot.transaction():  # in one moment of the database's clock
        for _ in range(1000):
            await cool_down(hot, CONVERTER, 60, POLICY)
    assert await asyncio.wait_for(heard.get(), 10) == "look"
    assert (await standing(hot))["cooldown_seconds"] == 60
    assert await breaker_events(hot) == ["asked_to_wait"]


async def test_an_open_breaker_is_probed_only_when_the_wait_is_over_too(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 3, CONVERT)
    await fail(hot)
    await cool_down(hot, CONVERTER, 120, POLICY)
    await clock.forward(60)
    assert await claim_gated(hot, worker) == []
    await clock.forward(61)
    assert len(await claim_gated(hot, worker)) == POLICY.probes
    assert await breaker_events(hot) == ["opened", "half_opened"]


async def test_a_person_sees_it_and_can_end_it(hot: Connection) -> None:
    worker = await converter_worker(hot)
    job = await one_job(hot, CONVERT)
    await cool_down(hot, CONVERTER, 60, POLICY)
    explained = await explain(hot, job)
    assert explained.reason is Reason.BREAKER
    until = (await standing(hot))["cooldown_until"]
    assert explained.sentence == f"converter asked us to wait until {until:%Y-%m-%d %H:%M:%S} UTC."
    (shown,) = await list_breakers(hot, CONVERTER)
    assert (shown.state, shown.cooldown_until, shown.blocked) == ("closed", until, 1)
    assert await reset(hot, CONVERTER)
    assert len(await claim_gated(hot, worker)) == 1
    assert not await reset(hot, CONVERTER)


async def test_runs_that_end_make_room_while_calls_come_back(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 200, CONVERT)
    await cool_down(hot, CONVERTER, 5, POLICY)
    await clock.forward(5.01)
    first = await claim_gated(hot, worker)
    await succeed(hot, worker.id, [(one.id, one.token) for one in first])
    assert len(await claim_gated(hot, worker)) >= len(first)
