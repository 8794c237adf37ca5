"""When a cron expression ticks: on the minute, in its zone, also where and when the clocks are moved."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from waybill.errors import Refused
from waybill_engine.cron import Cron

MINUTE = timedelta(minutes=1)


def ticks(cron: str, zone: str, day: str, count: int) -> list[str]:
    """The first ticks from the beginning of a day, as the zone's clocks show them."""
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) - MINUTE
    found = Cron(cron, zone)
    return [f"{found.local(tick):%d %H:%M %z}" for tick in islice(found.after(start), count)]


# The clocks are put forward: in Berlin from 02:00 to 03:00, on Lord Howe Island from 02:00 to 02:30.


def test_a_time_that_is_skipped_in_spring_ticks_once_when_the_clocks_have_been_moved() -> None:
    assert ticks("30 2 * * *", "Europe/Berlin", "2026-03-28", 3) == [
        "28 02:30 +0100",
        "29 03:00 +0200",
        "30 02:30 +0200",
    ]
    assert ticks("15 2 * * *", "Australia/Lord_Howe", "2026-10-04", 2) == ["04 02:30 +1100", "05 02:15 +1100"]


def test_several_times_in_one_gap_tick_together_once() -> None:
    assert ticks("0,20,40 2 * * *", "Europe/Berlin", "2026-03-29", 2) == ["29 03:00 +0200", "30 02:00 +0200"]
    assert ticks("0 2,3 * * *", "Europe/Berlin", "2026-03-29", 2) == ["29 03:00 +0200", "30 02:00 +0200"]


def test_a_rhythm_goes_on_through_the_gap() -> None:
    assert ticks("30 * * * *", "Europe/Berlin", "2026-03-29", 3) == [
        "29 00:30 +0100",
        "29 01:30 +0100",
        "29 03:30 +0200",
    ]
    assert ticks("30 * * * *", "Australia/Lord_Howe", "2026-10-04", 3) == [
        "04 00:30 +1030",
        "04 01:30 +1030",
        "04 02:30 +1100",
    ]


# The clocks are put back: in Berlin from 03:00 to 02:00, on Lord Howe Island from 02:00 to 01:30.


def test_a_time_that_comes_twice_in_autumn_ticks_the_first_time_only() -> None:
    assert ticks("30 2 * * *", "Europe/Berlin", "2026-10-25", 2) == ["25 02:30 +0200", "26 02:30 +0100"]
    assert ticks("45 1 * * *", "Australia/Lord_Howe", "2026-04-05", 2) == ["05 01:45 +1100", "06 01:45 +1030"]
    assert ticks("0 */2 * * *", "Europe/Berlin", "2026-10-25", 3) == [
        "25 00:00 +0200",
        "25 02:00 +0200",
        "25 04:00 +0100",
    ]


def test_a_rhythm_goes_on_through_the_repeated_hour() -> None:
    assert ticks("0 * * * *", "Europe/Berlin", "2026-10-25", 5) == [
        "25 00:00 +0200",
        "25 01:00 +0200",
        "25 02:00 +0200",
        "25 02:00 +0100",
        "25 03:00 +0100",
    ]
    assert ticks("45 * * * *", "Australia/Lord_Howe", "2026-04-05", 3) == [
        "05 00:45 +1100",
        "05 01:45 +1100",
        "05 01:45 +1030",
    ]


def test_half_an_hour_more_or_less_loses_no_tick() -> None:
    assert ticks("0 */3 * * *", "Australia/Lord_Howe", "2026-10-04", 2) == ["04 00:00 +1030", "04 03:00 +1100"]
    assert ticks("0 */3 * * *", "Australia/Lord_Howe", "2026-04-05", 2) == ["05 00:00 +1100", "05 03:00 +1030"]


def test_a_zone_that_moves_its_clocks_at_midnight_still_has_its_midnight() -> None:
    assert ticks("0 0 * * *", "Africa/Cairo", "2026-04-23", 3) == ["23 00:00 +0200", "24 01:00 +0300", "25 00:00 +0300"]


ZONES = {
    "UTC": datetime(2026, 3, 29, 12, tzinfo=UTC),
    "Europe/Berlin": datetime(2026, 3, 29, 1, tzinfo=UTC),
    "Europe/London": datetime(2026, 10, 25, 1, tzinfo=UTC),
    "America/New_York": datetime(2026, 11, 1, 6, tzinfo=UTC),
    "America/Santiago": datetime(2026, 9, 6, 4, tzinfo=UTC),
    "Africa/Cairo": datetime(2026, 10, 29, 21, tzinfo=UTC),
    "Africa/Casablanca": datetime(2026, 2, 15, 2, tzinfo=UTC),
    "Asia/Kathmandu": datetime(2026, 5, 5, 5, tzinfo=UTC),
    "Australia/Lord_Howe": datetime(2026, 4, 4, 15, tzinfo=UTC),
}
"""Zones, each with a moment near which its clocks are moved, if it has any."""

FIELD = st.sampled_from(["*", "*/7", "0", "15", "30", "45", "0,30", "10-20/5"])
HOUR = st.sampled_from(["*", "0-23", "*/2", "0", "1", "2", "3", "0-3", "23", "1,2"])
DAY = st.sampled_from(["* * *", "29 * *", "* * 0", "1,25 * *", "* 3-10 *", "L * *"])


def by_walking(cron: str, zone: str, start: datetime, minutes: int) -> list[datetime]:
    """The rules, told once more in the slowest way: minute by minute, looking at the clock on the wall."""
    rhythm = cron.split()[1] in ("*", "0-23")
    first, last = (start + n * MINUTE for n in (-180, minutes))
    # In UTC no clock is ever moved: all local times that match, whether or not this zone's clocks show them.
    around = Cron(cron).after(first - timedelta(days=1))
    wanted = {one.replace(tzinfo=None) for one in takewhile(lambda one: one < last + timedelta(days=1), around)}
    seen: set[datetime] = set()
    found = []
    at = first  # far enough before, to have seen the first of times that come twice
    shown = on_the_wall(first - MINUTE, zone)
    while at < last:
        before, shown = shown, on_the_wall(at, zone)
        skipped = 0 if rhythm else max((shown - before) // MINUTE - 1, 0)
        passed = wanted & {shown - n * MINUTE for n in range(skipped + 1)}
        if passed and at >= start and (rhythm or not passed <= seen):
            found.append(at)
        seen |= passed
        at += MINUTE
    return found


def on_the_wall(at: datetime, zone: str) -> datetime:
    return at.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)


@settings(max_examples=60, deadline=None)
@given(FIELD, HOUR, DAY, st.sampled_from(sorted(ZONES)), st.integers(-300, 100))
@example("45", "*", "* * *", "Australia/Lord_Howe", -20)
@example("*/7", "*/2", "* * *", "Europe/Berlin", -100)
def test_ticks_are_what_a_person_watching_the_clock_would_expect(
    minute: str, hour: str, day: str, zone: str, shift: int
) -> None:
    cron = f"{minute} {hour} {day}"
    start = ZONES[zone] + shift * MINUTE
    expected = by_walking(cron, zone, start, 400)
    found = Cron(cron, zone)
    got = list(takewhile(lambda tick: tick < start + 400 * MINUTE, found.after(start - MINUTE)))
    assert got == expected
    if expected:
        assert found.latest(start + 399 * MINUTE) == expected[-1]
        assert found.latest(expected[0]) == expected[0]


def test_the_latest_tick_is_found_without_counting_through_years() -> None:
    assert Cron("* * * * *").latest(datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)) == datetime(2026, 1, 1, tzinfo=UTC)
    assert Cron("0 0 29 2 *").latest(datetime(2027, 1, 1, tzinfo=UTC)) == datetime(2024, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "zone", "said"),
    [
        ("61 * * * *", "UTC", "'61 * * * *' is not a cron expression: there is no such minute."),
        ("0 0 30 2 *", "UTC", "'0 0 30 2 *' is not a cron expression: there is no such day of month."),
        ("* * */20 * 1L", "UTC", "'* * */20 * 1L' never comes: no day in fifty years matches it."),
        ("0 2 * *", "UTC", "it has five fields (minute, hour, day of month, month, day of week)"),
        ("0 0 2 * * *", "UTC", "it has five fields"),
        ("@daily", "UTC", "it has five fields"),
        ("0 2 * * *", "Europe/Berln", "There is no time zone 'Europe/Berln'. Did you mean Europe/Berlin?"),
        ("0 2 * * *", "localtime", "There is no time zone 'localtime'."),
        ("0 2 * * *", "../../etc/passwd", "There is no time zone '../../etc/passwd'."),
    ],
)
def test_what_is_no_schedule_is_refused_with_a_reason(cron: str, zone: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        Cron(cron, zone)
    assert said in refused.value.message


@settings(max_examples=100, deadline=None)
@given(st.text("0123456789*/,-LW# \tMONJANö\x00²", max_size=20) | st.text(max_size=300))
def test_whatever_is_typed_is_understood_or_refused(text: str) -> None:
    with contextlib.suppress(Refused):
        next(Cron(text).after(datetime(2026, 1, 1, tzinfo=UTC)), None)
    with contextlib.suppress(Refused):
        Cron("0 2 * * *", text[:10])
