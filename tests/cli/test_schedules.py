"""`waybill schedules`: periodic jobs from the command line."""

from __future__ import annotations

import json

import pytest

from support.clock import Clock
from support.command_line import Waybill
from support.schedules import fired_ticks, nightly, set_time, utc
from waybill.db.database import Connection
from waybill_engine.schedules import declare
from waybill_engine.ticks import fire_due

NIGHTLY = ("schedules", "add", "nightly", "selftest", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin")


@pytest.fixture(autouse=True)
async def _after_noon(hot: Connection) -> None:
    await set_time(hot, utc("2026-11-16 12:10"))


async def test_a_schedule_is_added_and_fires(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    ran = await waybill(*NIGHTLY, "--payload", '{"steps": 1}')
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "Schedule nightly is added. It comes next on Tue 2026-11-17 02:30 CET (01:30 UTC), in 13 h.\n"
    await clock.forward(86400)
    assert len((await fire_due(hot)).firings) == 1
    job = await hot.fetchrow("SELECT * FROM jobs")
    assert job is not None
    assert (job["kind"], job["tenant"], job["max_attempts"], job["time_limit"]) == ("selftest", "operator", 3, 60)
    assert json.loads(job["payload"])["steps"] == 1


async def test_a_schedule_that_is_there_is_changed_only_when_told_to(waybill: Waybill, hot: Connection) -> None:
    await waybill(*NIGHTLY)
    assert "there already, just so" in (await waybill(*NIGHTLY)).out
    refused = await waybill(*NIGHTLY, "--priority", 5)
    assert (refused.code, refused.out) == (1, "")
    assert "--replace" in refused.err
    assert await hot.fetchval("SELECT priority FROM schedules") == 0
    changed = await waybill(*NIGHTLY, "--priority", 5, "--replace", "--json")
    assert (changed.json["outcome"], changed.json["priority"]) == ("changed", 5)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nightly", "selftest", "--cron", "61 * * * *"), 1, "'61 * * * *' is not a cron expression"),
        (("nightly", "selftest", "--cron", "0 2 * * *", "--timezone", "Berlin"), 1, "Did you mean Europe/Berlin?"),
        (("nightly", "no_such", "--cron", "0 2 * * *"), 1, "There is no kind 'no_such'."),
        (("nightly", "selftest"), 2, "--cron"),
        (("No Name", "selftest", "--cron", "0 2 * * *"), 2, "cannot be a schedule"),
        (("nightly", "selftest", "--cron", "0 2 * * *", "--payload", "[]"), 2, "must be a JSON object"),
        (("nightly", "selftest", "--cron", "0 2 * * *", "--missed", "never"), 2, "never"),
    ],
)
async def test_what_is_wrong_is_told(waybill: Waybill, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = await waybill("schedules", "add", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


async def test_every_schedule_has_one_line(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    assert "No schedules." in (await waybill("schedules", "ls")).err
    await declare(hot, nightly())
    await declare(hot, nightly(name="weekly", cron="0 6 * * MON", timezone="Asia/Jakarta"))
    await clock.forward(16 * 3600)
    await fire_due(hot)
    await waybill("schedules", "pause", "weekly", "--reason", "holidays")
    await clock.forward(30)
    ran = await waybill("schedules", "ls")
    assert [line.split("  ") for line in _squeezed(ran.lines)] == [
        ["NAME", "KIND", "CRON", "ZONE", "NEXT", "LAST", "STATUS"],
        ["nightly", "work", "30 2 * * *", "UTC", "in 22 h", "1 h ago", "on"],
        ["weekly", "work", "0 6 * * MON", "Asia/Jakarta", "-", "-", "paused 30 s ago: holidays"],
    ]
    found = (await waybill("schedules", "ls", "--json")).json["schedules"]
    assert [each["name"] for each in found] == ["nightly", "weekly"]
    assert found[0]["last_tick"] == "2026-11-17T02:30:00Z"


def _squeezed(lines: list[str]) -> list[str]:
    return ["  ".join(part.strip() for part in line.split("  ") if part.strip()) for line in lines]


async def test_one_schedule_is_shown_with_its_next_ticks(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    await waybill(*NIGHTLY, "--missed", "skip", "--grace", "10m")
    await set_time(hot, utc("2027-03-26 01:30:30"))
    await fire_due(hot)
    ran = await waybill("schedules", "show", "nightly")
    assert "At 02:30 every day, Europe/Berlin" in ran.out
    assert "a tick more than 10 min late is dropped" in ran.out
    assert "Fri 2027-03-26 02:30 CET (01:30 UTC), 30 s ago" in ran.out
    assert f"job {await hot.fetchval('SELECT id FROM jobs')} queued" in ran.out
    # The night in which the clocks are put forward has no 02:30.
    assert _squeezed(ran.lines[ran.lines.index("Next") + 1 :])[:3] == [
        "Sat 2027-03-27 02:30 CET  2027-03-27 01:30 UTC  in 1 d",
        "Sun 2027-03-28 03:00 CEST  2027-03-28 01:00 UTC  in 2 d",
        "Mon 2027-03-29 02:30 CEST  2027-03-29 00:30 UTC  in 3 d",
    ]
    shown = (await waybill("schedules", "show", "nightly", "--json")).json
    assert (shown["last_job_state"], len(shown["next_ticks"])) == ("queued", 5)


async def test_a_schedule_that_could_not_be_fired_can_still_be_looked_at(
    waybill: Waybill, hot: Connection, clock: Clock
) -> None:
    await declare(hot, nightly())
    await hot.execute("UPDATE schedules SET timezone = 'Mars/Olympus'")
    await clock.forward(86400)
    await fire_due(hot)
    for arguments in (("ls",), ("show", "nightly")):
        ran = await waybill("schedules", *arguments)
        assert ran.code == 0
        assert "It cannot be fired: There is no time zone 'Mars/Olympus'." in ran.out


async def test_a_schedule_is_paused_resumed_run_and_removed(waybill: Waybill, hot: Connection) -> None:
    await declare(hot, nightly())
    assert (await waybill("schedules", "pause", "nightly")).code == 0
    assert "paused" in (await waybill("schedules", "show", "nightly")).out
    ran = await waybill("schedules", "run", "nightly")
    assert ran.out.strip() == str(await hot.fetchval("SELECT id FROM jobs"))
    assert (await waybill("schedules", "resume", "nightly")).out == "Schedule nightly goes on.\n"
    assert (await waybill("schedules", "resume", "nightly", "--json")).json["was_paused"] is False
    assert (await waybill("schedules", "rm", "nightly")).code == 0
    assert len(await fired_ticks(hot)) == 1, "its job stays"
    for command in ("show", "rm", "pause", "resume", "run"):
        missing = await waybill("schedules", command, "nightly")
        assert (missing.code, missing.out) == (1, "")
        assert "There is no schedule nightly." in missing.err
