"""Times and amounts, read and typed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill.console.human_units import ago, counted, duration, moment, parse_duration, size

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 ms"),
        (0.0004, "0 ms"),
        (0.34, "340 ms"),
        (0.9999, "1 s"),
        (3.21, "3.2 s"),
        (9.97, "10 s"),
        (59.7, "1 min"),
        (250, "4 min 10 s"),
        (3600, "1 h"),
        (86399.9, "1 d"),
        (2 * 86400 + 3 * 3600 + 59, "2 d 3 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (5.9, "5 s ago"),
        (185, "3 min ago"),
        (7199, "1 h ago"),
        (3 * 86400, "3 d ago"),
        (-0.5, "in a moment"),
        (-20, "in 20 s"),
        (-59.9, "in 1 min"),
        (-3599, "in 1 h"),
        (-3500, "in 58 min"),
    ],
)
def test_ages(seconds: float, text: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == text


def test_no_moment_has_no_age() -> None:
    assert ago(None, NOW) == ""


def test_moments_are_utc_and_say_so() -> None:
    assert moment(NOW) == "2026-03-01 12:00:00.123 UTC"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (12_345, "12.3 kB"), (999_999, "1.0 MB"), (5 * 10**13, "50.0 TB")]
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


def test_amounts() -> None:
    assert [counted(number, "job") for number in (0, 1, 1234)] == ["0 jobs", "1 job", "1,234 jobs"]


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [("90", 90), ("45s", 45), ("15m", 900), ("15 min", 900), ("1.5H", 5400), ("30d", 2592000), ("2w", 1209600)],
)
def test_durations_as_typed(typed: str, seconds: float) -> None:
    assert parse_duration(typed) == seconds


@pytest.mark.parametrize("typed", ["", "soon", "-5s", "5x", "1h30m", "9999w", "١s", "1e3s"])
def test_what_is_no_duration(typed: str) -> None:
    with pytest.raises(ValueError):
        parse_duration(typed)


def test_where_a_unit_is_required_a_bare_number_is_refused() -> None:
    with pytest.raises(ValueError, match="unit"):
        parse_duration("30", unit_required=True)


@given(st.floats(0, 10**9))
def test_a_duration_is_short_whatever_it_is(seconds: float) -> None:
    assert len(duration(seconds)) <= 14
