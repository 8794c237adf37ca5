"""`waybill breaker`: for whoever is paged because a dependency of jobs is down."""

from __future__ import annotations

import pytest

from support.breakers import CONVERT, CONVERTER, POLICY, claim_gated, converter_worker, fail, state_of
from support.clock import Clock
from support.command_line import Waybill
from support.engine import some_jobs
from waybill.db.database import Connection
from waybill_engine.breaker import admit
from waybill_engine.breaker_counts import CallCount, record
from waybill_engine.cooldowns import cool_down


async def test_every_dependency_has_one_line(waybill: Waybill, hot: Connection) -> None:
    await converter_worker(hot)
    await some_jobs(hot, 3, CONVERT)
    await record(hot, [CallCount(CONVERTER, 9, 3)], POLICY)
    quiet = await waybill("breaker", "ls")
    assert [line.split() for line in quiet.lines] == [
        ["NAME", "STATE", "WAITING", "FAILED", "KINDS"],
        ["converter", "closed", "-", "3/9", "convert,", "preview"],
    ]
    await fail(hot)
    loud = await waybill("breaker", "ls")
    assert loud.lines[0].split() == ["NAME", "STATE", "SINCE", "NEXT", "WAITING", "FAILED", "KINDS", "REASON"]
    assert loud.lines[1].split()[:2] == ["converter", "open"]
    assert "probes in" in loud.lines[1]
    assert loud.lines[1].endswith("13 of 19 calls failed")


async def test_the_json_has_everything(waybill: Waybill, hot: Connection) -> None:
    await converter_worker(hot)
    await some_jobs(hot, 2, CONVERT)
    await fail(hot)
    (breaker,) = (await waybill("breaker", "ls", "--json")).json["breakers"]
    assert breaker["open_until"] > breaker["since"]
    del breaker["open_until"], breaker["since"]
    assert breaker == {
        "name": "converter",
        "state": "open",
        "successes": 0,
        "reason": "10 of 10 calls failed",
        "kinds": ["convert", "preview"],
        "calls": 10,
        "failures": 10,
        "cooldown_until": None,
        "held": 2,
    }


async def test_no_breakers(waybill: Waybill, database_url: str) -> None:
    ran = await waybill("breaker", "ls")
    assert (ran.code, ran.out) == (0, "")
    assert "No breakers" in ran.err


async def test_one_breaker_is_shown_with_its_history(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    await converter_worker(hot)
    await fail(hot)
    await clock.forward(31)
    async with hot.transaction():
        await admit(hot, [CONVERTER], POLICY)
    ran = await waybill("breaker", "show", "converter")
    assert ran.lines[0] == "converter"
    assert "half_open since" in ran.lines[1]
    assert "probes, 0 succeeded" in ran.out
    assert ran.lines[-2].endswith("half opened")
    assert ran.lines[-1].split()[3:] == ["opened", "10", "of", "10", "calls", "failed", "·", "for", "30", "s"]
    told = (await waybill("breaker", "show", "converter", "--json")).json
    assert [one["event"] for one in told["history"]] == ["half_opened", "opened"]


async def test_a_breaker_is_tripped_and_reset(waybill: Waybill, hot: Connection) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 1, CONVERT)
    tripped = await waybill("breaker", "trip", "converter", "--reason", "vendor maintains it")
    assert (tripped.code, tripped.err) == (0, "")
    assert tripped.out == (
        "The breaker of converter is open until it is reset. Close it with: waybill breaker reset converter\n"
    )
    assert await claim_gated(hot, worker) == []
    assert "vendor maintains it · until reset" in (await waybill("breaker", "show", "converter")).out
    assert (await waybill("breaker", "reset", "converter")).out == "The breaker of converter is closed.\n"
    assert len(await claim_gated(hot, worker)) == 1
    assert (await waybill("breaker", "reset", "converter", "--json")).json == {
        "name": "converter",
        "state": "closed",
        "was_closed": True,
    }


async def test_a_dependency_that_asked_us_to_wait_says_so(waybill: Waybill, hot: Connection) -> None:
    await converter_worker(hot)
    await some_jobs(hot, 2, CONVERT)
    await cool_down(hot, CONVERTER, 120, POLICY)
    line = (await waybill("breaker", "ls")).lines[1]
    assert "closed" in line
    assert "asked us to wait, calls in " in line
    shown = (await waybill("breaker", "show", "converter")).out
    assert "2 queued jobs" in shown
    assert "asked to wait" in shown
    assert (await waybill("breaker", "reset", "converter")).out == "The breaker of converter is closed.\n"
    assert len(await claim_gated(hot, await converter_worker(hot))) == 2


async def test_a_breaker_is_tripped_for_a_while(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 3, CONVERT)
    assert "open for 10 min; then probes" in (await waybill("breaker", "trip", "converter", "--for", "10m")).out
    await clock.forward(601)
    assert len(await claim_gated(hot, worker)) == 2


async def test_tripping_what_nobody_leans_on_is_done_but_doubted(waybill: Waybill, hot: Connection) -> None:
    await converter_worker(hot)
    ran = await waybill("breaker", "trip", "convertor")
    assert ran.code == 0
    assert "known are converter" in ran.err
    assert await state_of(hot, "convertor") == "open"
    missing = await waybill("breaker", "show", "nothing")
    assert missing.code == 1
    assert "Known dependencies: converter, convertor" in missing.err


@pytest.mark.parametrize("wrong", [("No Such",), ("converter", "--for", "0"), ("converter", "--for", "soon"), ()])
async def test_wrong_usage(waybill: Waybill, database_url: str, wrong: tuple[str, ...]) -> None:
    assert (await waybill("breaker", "trip", *wrong)).code == 2
