"""Periodic jobs: each tick fires as its schedule says, once across the fleet, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.clock import Clock
from support.engine import OTHER, WORK, Connect, count, until_blocked
from support.schedules import HOLD, LET_GO, STOP_BEFORE_MOVING_ON, fired_ticks, nightly, set_time, utc
from waybill.db.database import Connection
from waybill.errors import NotFound, Refused
from waybill_engine.cron import Cron
from waybill_engine.new_job import MAX_PAYLOAD
from waybill_engine.schedules import Declared, Missed, declare, pause, remove, resume, run_now, tick_of
from waybill_engine.ticks import MOST_AT_ONCE, fire_due, next_in

EVENING = utc("2026-06-01 20:00")
TICK = utc("2026-06-02 02:30")
DAY = timedelta(days=1)

_numbers = itertools.count()


@pytest.fixture(autouse=True)
async def _evening(hot: Connection) -> None:
    await set_time(hot, EVENING)


@pytest.fixture
async def fleet(connect: Connect) -> list[Connection]:
    return [await connect() for _ in range(3)]


async def stored(connection: Connection) -> asyncpg.Record:
    row = await connection.fetchrow("SELECT * FROM schedules WHERE name = 'nightly'")
    assert row is not None
    return row


# One tick, one job


async def test_a_tick_becomes_a_job_with_all_that_its_schedule_says(hot: Connection, clock: Clock) -> None:
    schedule = nightly(
        payload={"pages": 3}, timezone="Europe/Berlin", queue="night", priority=2, cost=5, cron="30 4 * * *"
    )
    assert await declare(hot, schedule) is Declared.CREATED
    assert (await fire_due(hot)).firings == []
    await clock.forward(7 * 3600)
    (firing,) = (await fire_due(hot)).firings
    job = await hot.fetchrow("SELECT * FROM jobs")
    assert job is not None
    assert (firing.job_id, firing.tick, firing.schedule) == (job["id"], TICK, "nightly")
    assert (job["kind"], job["queue"], job["tenant"], job["owner"]) == ("work", "night", "acme", "acme")
    assert (job["priority"], job["cost"], job["state"]) == (2, 5, "queued")
    assert (job["max_attempts"], job["max_crashes"], job["time_limit"]) == (3, 3, WORK.time_limit)
    payload = json.loads(job["payload"])
    assert payload == {
        "pages": 3,
        "schedule": {"name": "nightly", "tick": "2026-06-02T02:30:00Z", "local": "2026-06-02T04:30:00+02:00"},
    }
    assert tick_of(payload) == TICK
    assert tick_of({}) is None
    row = await stored(hot)
    assert (row["next_at"], row["last_tick"], row["last_job_id"]) == (TICK + DAY, TICK, job["id"])
    assert (await fire_due(hot)).firings == []


async def test_the_wait_for_the_next_tick_is_known(hot: Connection) -> None:
    assert await next_in(hot) is None
    assert (await fire_due(hot)).next_in is None
    await declare(hot, nightly())
    await declare(hot, nightly(name="later", cron="0 5 * * *"))
    assert (await fire_due(hot)).next_in == pytest.approx(6.5 * 3600, abs=60)
    assert await next_in(hot) == pytest.approx(6.5 * 3600, abs=60)


async def test_a_schedule_somebody_else_is_firing_is_left_to_them(
    hot: Connection, connect: Connect, clock: Clock
) -> None:
    other = await connect()
    await declare(hot, nightly())
    await declare(hot, nightly(name="second", cron="31 2 * * *"))
    await clock.forward(7 * 3600)
    async with other.transaction():
        await other.execute("SELECT FROM schedules WHERE name = 'nightly' FOR UPDATE")
        fired = await fire_due(hot)
        assert [one.schedule for one in fired.firings] == ["second"]
        assert fired.next_in == 1.0, "soon, in case they die, but not at once"
    assert [one.schedule for one in (await fire_due(hot)).firings] == ["nightly"]


async def test_a_firer_that_dies_half_way_has_done_nothing_and_the_next_does_all_of_it(
    hot: Connection, connect: Connect, clock: Clock
) -> None:
    dying, test = await connect(), await connect()
    await declare(hot, nightly())
    await hot.execute(STOP_BEFORE_MOVING_ON)
    await clock.forward(7 * 3600)
    await test.execute(HOLD)
    firing = asyncio.create_task(fire_due(dying))
    await until_blocked(test, dying)
    await test.execute("SELECT pg_terminate_backend($1)", dying.get_server_pid())
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await firing
    assert await count(hot) == 0
    await test.execute(LET_GO)
    assert len((await fire_due(hot)).firings) == 1
    assert await fired_ticks(hot) == [TICK]


async def test_a_tick_never_has_a_second_job_even_if_its_schedule_was_set_back(hot: Connection, clock: Clock) -> None:
    await declare(hot, nightly())
    await clock.forward(7 * 3600)
    first = await fire_due(hot)
    await hot.execute("UPDATE schedules SET next_at = $1, last_tick = NULL", TICK)
    again = await fire_due(hot)
    assert [one.job_id for one in again.firings] == [one.job_id for one in first.firings]
    assert await fired_ticks(hot) == [TICK]


async def test_a_column_that_a_newer_release_adds_disturbs_nobody(
    hot: Connection, connect: Connect, clock: Clock
) -> None:
    await declare(hot, nightly())
    assert (await fire_due(hot)).firings == []  # from now on, the statements are prepared
    await resume(hot, "nightly")
    await (await connect()).execute("ALTER TABLE schedules ADD COLUMN colour text NOT NULL DEFAULT 'blue'")
    await clock.forward(7 * 3600)
    assert len((await fire_due(hot)).firings) == 1
    assert await resume(hot, "nightly") is False


async def test_a_schedule_that_cannot_be_fired_is_held_with_the_reason_and_stops_no_other(
    hot: Connection, clock: Clock
) -> None:
    await declare(hot, nightly())
    await declare(hot, nightly(name="broken", cron="29 2 * * *"))
    await hot.execute("UPDATE schedules SET timezone = 'Mars/Olympus' WHERE name = 'broken'")
    await clock.forward(7 * 3600)
    fired = await fire_due(hot)
    assert (fired.paused, [one.schedule for one in fired.firings]) == (["broken"], ["nightly"])
    reason = await hot.fetchval("SELECT paused_reason FROM schedules WHERE name = 'broken'")
    assert reason.startswith("It cannot be fired: There is no time zone 'Mars/Olympus'.")
    assert (await fire_due(hot)).paused == []


# Declaring


async def test_what_is_declared_already_is_left_alone(hot: Connection, clock: Clock) -> None:
    await declare(hot, nightly(payload={"pages": 1.5}))
    await clock.forward(7 * 3600)
    before = await stored(hot)
    assert await declare(hot, nightly(payload={"pages": 1.5}, cron=" 30  2 * * * ")) is Declared.UNCHANGED
    assert await stored(hot) == before
    await fire_due(hot)
    assert await fired_ticks(hot) == [TICK], "declaring again does not make a tick unmissed"


async def test_other_ticks_begin_now_and_other_facts_keep_the_tick_that_is_owed(hot: Connection, clock: Clock) -> None:
    await declare(hot, nightly())
    await clock.forward(7 * 3600)
    assert await declare(hot, nightly(kind=OTHER, payload={"new": True})) is Declared.CHANGED
    assert (await stored(hot))["next_at"] == TICK
    assert await declare(hot, nightly(cron="0 12 * * *")) is Declared.CHANGED
    assert (await stored(hot))["next_at"] == utc("2026-06-02 12:00")
    assert await declare(hot, nightly(cron="0 12 * * *", timezone="Asia/Jakarta")) is Declared.CHANGED
    assert (await stored(hot))["next_at"] == utc("2026-06-02 05:00")
    assert (await fire_due(hot)).firings == []


async def test_a_fleet_that_declares_at_once_makes_one_schedule(fleet: list[Connection]) -> None:
    outcomes = await asyncio.gather(*(declare(connection, nightly()) for connection in fleet))
    assert sorted(outcomes) == [Declared.CREATED, Declared.UNCHANGED, Declared.UNCHANGED]


async def test_declaring_does_not_undo_an_operators_pause(hot: Connection, clock: Clock) -> None:
    await declare(hot, nightly())
    await pause(hot, "nightly", "month's end")
    await declare(hot, nightly())
    await declare(hot, nightly(cron="0 3 * * *"))
    await clock.forward(DAY.total_seconds())
    assert (await fire_due(hot)).firings == []
    assert (await stored(hot))["paused_reason"] == "month's end"


async def test_what_could_not_be_fired_is_refused_when_it_is_written() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"name": "No Name"}, "'No Name' cannot be a schedule"),
        ({"cron": "61 * * * *"}, "'61 * * * *' is not a cron expression"),
        ({"timezone": "Berlin"}, "There is no time zone 'Berlin'"),
        ({"payload": {"schedule": 1}}, "cannot have the key 'schedule'"),
        ({"payload": {"text": "x" * (MAX_PAYLOAD - 20)}}, "at most 65536 bytes"),
        ({"payload": {"text": "\0"}}, "must not have NUL"),
        ({"tenant": ""}, "tenant"),
        ({"queue": "No Queue"}, "cannot be a queue"),
        ({"priority": 99999}, "priority"),
        ({"grace": 0.0}, "grace"),
    ]
    for facts, said in wrong:
        with pytest.raises(Refused) as refused:
            nightly(**facts)
        assert said in refused.value.message


# A person steps in


async def test_ticks_during_a_pause_are_not_owed_afterwards(hot: Connection, clock: Clock) -> None:
    await declare(hot, nightly(missed=Missed.ALL))
    await pause(hot, "nightly", "holidays")
    since = (await stored(hot))["paused_at"]
    await pause(hot, "nightly", "longer holidays")
    assert (await stored(hot))["paused_at"] == since
    await set_time(hot, utc("2026-06-10 12:00"))
    assert await next_in(hot) is None
    assert await resume(hot, "nightly") is True
    assert await resume(hot, "nightly") is False
    assert (await fire_due(hot)).firings == []
    await clock.forward(DAY.total_seconds())
    await fire_due(hot)
    assert await fired_ticks(hot) == [utc("2026-06-11 02:30")]


async def test_a_run_by_hand_is_beside_the_ticks(hot: Connection, clock: Clock) -> None:
    await declare(hot, nightly(payload={"pages": 3}))
    await pause(hot, "nightly")
    jobs = {await run_now(hot, "nightly") for _ in range(2)}
    assert len(jobs) == 2
    payload = json.loads(await hot.fetchval("SELECT payload FROM jobs LIMIT 1"))
    assert payload["pages"] == 3
    assert payload["schedule"]["extra"] is True
    assert tick_of(payload) is not None
    assert (await stored(hot))["last_tick"] is None
    await resume(hot, "nightly")
    await clock.forward(7 * 3600)
    assert len((await fire_due(hot)).firings) == 1


async def test_a_removed_schedule_fires_no_more_and_its_jobs_stay(hot: Connection, clock: Clock) -> None:
    await declare(hot, nightly())
    await clock.forward(DAY.total_seconds())
    await fire_due(hot)
    await remove(hot, "nightly")
    await clock.forward(DAY.total_seconds())
    assert (await fire_due(hot)).firings == []
    assert await count(hot) == 1
    for act in (remove, pause, resume, run_now):
        with pytest.raises(NotFound, match="There is no schedule nightly"):
            await act(hot, "nightly")


# Missed ticks


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        (Missed.SKIP, []),
        (Missed.ONCE, [utc("2026-06-05 02:30")]),
        (Missed.ALL, [TICK, TICK + DAY, TICK + 2 * DAY, TICK + 3 * DAY]),
    ],
)
async def test_what_becomes_of_ticks_nobody_was_there_for(
    hot: Connection, clock: Clock, missed: Missed, expected: list[datetime]
) -> None:
    await declare(hot, nightly(missed=missed))
    await set_time(hot, utc("2026-06-05 12:00"))
    assert [one.tick for one in (await fire_due(hot)).firings] == expected
    assert await fired_ticks(hot) == expected
    assert (await stored(hot))["next_at"] == utc("2026-06-06 02:30")
    await set_time(hot, utc("2026-06-06 02:30:30"))
    assert [one.tick for one in (await fire_due(hot)).firings] == [utc("2026-06-06 02:30")]


async def test_many_missed_ticks_fire_in_portions(hot: Connection, clock: Clock) -> None:
    await declare(hot, nightly(cron="* * * * *", missed=Missed.ALL))
    await clock.forward(150 * 60)
    portions = []
    left: float | None = 0.0
    while left == 0.0:
        fired = await fire_due(hot)
        portions.append(len(fired.firings))
        left = fired.next_in
    assert portions == [MOST_AT_ONCE, 50]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cron=st.sampled_from(["* * * * *", "*/20 * * * *", "7 */2 * * *", "30 2 * * *", "15 2,3 * * 0"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    missed=st.sampled_from(list(Missed)),
    grace=st.sampled_from([60, 600, 7200]),
    start=st.sampled_from(["2026-03-28 22:10:30", "2026-10-24 22:10:30", "2026-04-04 12:10:30", "2026-10-03 13:10:30"]),
    steps=st.lists(
        st.tuples(st.sampled_from([0, 1, 5, 60, 61, 250, 700, -90]), st.lists(st.booleans(), min_size=1, max_size=3)),
        min_size=1,
        max_size=5,
    ),
)
async def test_every_tick_fires_as_its_policy_says_and_never_twice(
    hot: Connection,
    fleet: list[Connection],
    cron: str,
    zone: str,
    missed: Missed,
    grace: int,
    start: str,
    steps: list[tuple[int, list[bool]]],
) -> None:
    """The clock jumps, also back; each time some firers come at once, and some of them die before they commit."""
    name = f"example_{next(_numbers)}"
    now = done = utc(start)
    await set_time(hot, now)
    await declare(hot, nightly(name=name, cron=cron, timezone=zone, missed=missed, grace=grace))
    expected: list[datetime] = []
    for minutes, firers in steps:
        now += timedelta(minutes=minutes)
        await set_time(hot, now)
        await asyncio.gather(*(_fire(each, dies=dies) for each, dies in zip(fleet, firers, strict=False)))
        await _fire(hot)  # in the end somebody lives
        ticks = _until(now, Cron(cron, zone).after(done))
        done = max(done, now)
        if missed is Missed.SKIP:
            ticks = [tick for tick in ticks if now - tick < timedelta(seconds=grace)]
        expected += ticks[-1:] if missed is Missed.ONCE else ticks
    assert await fired_ticks(hot, name) == expected
    await remove(hot, name)


def _until(now: datetime, ticks: Iterator[datetime]) -> list[datetime]:
    return list(itertools.takewhile(lambda tick: tick <= now, ticks))


class _Dies(Exception):
    pass


async def _fire(connection: Connection, *, dies: bool = False) -> None:
    left: float | None = 0.0
    while left == 0.0:
        with contextlib.suppress(_Dies):
            async with connection.transaction():
                left = (await fire_due(connection)).next_in
                if dies:
                    left = None
                    raise _Dies


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe"])
async def test_every_night_of_a_year_has_its_firing(hot: Connection, zone: str) -> None:
    """Also the night whose clocks skip 02:15, and the one that has 01:45 or 02:15 twice."""
    for name, cron in (("early", "45 1 * * *"), ("late", "15 2 * * *")):
        await set_time(hot, utc("2026-01-01"))
        await declare(hot, nightly(name=name, cron=cron, timezone=zone, missed=Missed.ALL))
        await set_time(hot, utc("2027-01-01"))
        await _fire(hot)
        days = [tick.astimezone(ZoneInfo(zone)).date() for tick in await fired_ticks(hot, name)]
        assert len(days) == len(set(days)) == 365
