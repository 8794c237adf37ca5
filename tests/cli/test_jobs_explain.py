"""`waybill jobs explain`."""

from __future__ import annotations

from support.breakers import CONVERT, CONVERTER, converter_worker
from support.command_line import Waybill
from support.engine import one_job, start_worker
from waybill.db.database import Connection
from waybill_engine.breaker_control import trip
from waybill_engine.control import pause


async def test_one_sentence_for_a_person_and_facts_for_a_program(waybill: Waybill, hot: Connection) -> None:
    await start_worker(hot)
    job = await one_job(hot)
    ran = await waybill("jobs", "explain", str(job))
    assert (ran.code, ran.out) == (0, "It is next: the first worker with a free slot takes it.\n")

    await pause(hot, "default", "\x1b[31mred")
    ran = await waybill("jobs", "explain", str(job))
    assert "paused" in ran.out
    assert "\x1b" not in ran.out
    told = (await waybill("jobs", "explain", str(job), "--json")).json
    assert (told["reason"], told["queue"]) == ("queue_paused", "default")
    assert (told["key"], told["params"]["queue"]) == ("explain.queue_paused_because", "default")


async def test_the_reason_is_ours_and_not_the_breakers(waybill: Waybill, hot: Connection) -> None:
    await converter_worker(hot)
    job = await one_job(hot, CONVERT)
    await trip(hot, CONVERTER, "maintenance")
    told = (await waybill("jobs", "explain", str(job), "--json")).json
    assert (told["reason"], told["key"]) == ("breaker", "explain.breaker.tripped_because")
    assert told["params"] == {"dependency": CONVERTER, "why": "maintenance"}


async def test_a_job_that_is_not_there(waybill: Waybill) -> None:
    ran = await waybill("jobs", "explain", "01890000-0000-7000-8000-000000000001")
    assert ran.code == 1
    assert "There is no job" in ran.err
