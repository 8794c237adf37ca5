"""`waybill jobs ls`: finding jobs."""

from __future__ import annotations

import pytest

from support.clock import Clock
from support.command_line import Waybill
from support.engine import OTHER, one_job, running_job, some_jobs
from waybill.db.database import Connection
from waybill_engine import State
from waybill_engine.control import cancel
from waybill_engine.finish import RunOutcome, settle
from waybill_engine.lease import Progress, write_progress

NO_JOB = "019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b"


async def listed(waybill: Waybill, *arguments: object) -> list[str]:
    return [job["id"] for job in (await waybill("jobs", "ls", "--json", *arguments)).json["jobs"]]


async def test_a_list_shows_whole_ids_newest_first(waybill: Waybill, hot: Connection) -> None:
    jobs = await some_jobs(hot, 3)
    ran = await waybill("jobs", "ls")
    assert [line.split()[0] for line in ran.lines] == ["ID", *(str(job) for job in reversed(jobs))]
    assert ran.err == ""


async def test_a_list_can_be_narrowed(waybill: Waybill, hot: Connection) -> None:
    waiting, stopped = await some_jobs(hot, 2)
    await cancel(hot, stopped)
    other = await one_job(hot, OTHER, queue="night")
    assert await listed(waybill, "--state", "cancelled") == [str(stopped)]
    assert await listed(waybill, "--state", "cancelled", "--state", "queued", "--kind", "work") == [
        str(stopped),
        str(waiting),
    ]
    assert await listed(waybill, "--queue", "night") == [str(other)]
    assert await listed(waybill, "--tenant", "nobody") == []


async def test_a_list_continues_where_it_ended(waybill: Waybill, hot: Connection) -> None:
    jobs = [str(job) for job in (await some_jobs(hot, 5))[::-1]]
    first = (await waybill("jobs", "ls", "--json", "--limit", 3)).json
    rest = (await waybill("jobs", "ls", "--json", "--limit", 3, "--before", first["next_before"])).json
    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == jobs
    assert rest["next_before"] is None
    assert f"--before {jobs[2]}" in (await waybill("jobs", "ls", "-n", 3)).err


async def test_an_empty_list_is_kind(waybill: Waybill, hot: Connection) -> None:
    ran = await waybill("jobs", "ls")
    assert (ran.code, ran.out) == (0, "")
    assert "waybill selftest" in ran.err
    assert "No jobs match" in (await waybill("jobs", "ls", "--kind", "work")).err
    assert (await waybill("jobs", "ls", "--json")).json == {"jobs": [], "next_before": None}


async def test_ages_follow_the_databases_clock(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    await one_job(hot)
    await one_job(hot, delay=7200.0)
    await clock.forward(3 * 60 + 5)
    newer, older = (await waybill("jobs", "ls")).lines[1:]
    assert "3 min ago" in older
    assert newer.endswith("in 2 h")


async def test_a_list_says_the_one_thing_worth_knowing(waybill: Waybill, hot: Connection) -> None:
    worker, lease = await running_job(hot)
    await write_progress(hot, [Progress(lease.id, lease.token, lease.worker_id, 0.4, "page 2 of 5")])
    assert "40 % page 2 of 5" in (await waybill("jobs", "ls")).out
    await cancel(hot, lease.id)
    assert "asked to stop · 40 %" in (await waybill("jobs", "ls")).out
    await settle(hot, worker.id, [(lease.id, lease.token, RunOutcome(State.FAILED, "failed", code="X", message="bad"))])
    assert "X: bad" in (await waybill("jobs", "ls")).out


@pytest.mark.parametrize(
    "wrong", [("--state", "done"), ("--limit", "0"), ("--before", "yesterday"), ("--nonsense",), ("extra",)]
)
async def test_a_wrong_argument_is_a_usage_error(waybill: Waybill, wrong: tuple[str, ...], database_url: str) -> None:
    assert (await waybill("jobs", "ls", *wrong)).code == 2
