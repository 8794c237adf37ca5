"""A job's history becomes the stretches of its life: waits, runs, and how each run ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from waybill_api.ops.timeline import Stretch, rows, spans
from waybill_engine import State
from waybill_engine.queries import Happening

BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def happened(seconds: float, event: str, token: int | None = None, **detail: Any) -> Happening:
    return Happening(at(seconds), event, "w1" if token else None, token, detail)


def told(found: list[Stretch]) -> list[tuple[str, float, float, str]]:
    return [
        (one.what, (one.begin - BEGIN).total_seconds(), (one.end - BEGIN).total_seconds(), one.outcome) for one in found
    ]


def test_a_failed_run_its_pause_and_the_next_run() -> None:
    history = [
        happened(0, "enqueued"),
        happened(2, "started", 1),
        happened(5, "retry_scheduled", 1, code="GW_5XX", message="It said 502.", retry_at=at(10).isoformat()),
        happened(12, "started", 2),
        happened(20, "succeeded", 2),
    ]
    found = spans(history, State.SUCCEEDED, at(100))
    assert told(found) == [
        ("queued", 0, 2, ""),
        ("run", 2, 5, "retry_scheduled"),
        ("scheduled", 5, 10, ""),
        ("queued", 10, 12, ""),
        ("run", 12, 20, "succeeded"),
    ]
    assert (found[1].code, found[1].number, found[4].number, found[4].worker) == ("GW_5XX", 1, 2, "w1")
    assert [one.layer for one in found] == ["queued", "failed", "scheduled", "queued", "succeeded"]


def test_what_goes_on_ends_now() -> None:
    waiting = spans([happened(0, "enqueued")], State.QUEUED, at(30))
    assert told(waiting) == [("queued", 0, 30, "")]
    assert waiting[0].going_on
    running = spans([happened(0, "enqueued"), happened(3, "started", 1)], State.RUNNING, at(30))
    assert told(running) == [("queued", 0, 3, ""), ("run", 3, 30, "")]
    assert running[1].layer == "running"
    (later,) = spans([happened(0, "enqueued")], State.SCHEDULED, at(5))
    assert (later.what, later.going_on) == ("scheduled", True)


def test_a_cancelled_job_stops_waiting_and_a_retry_by_hand_begins_anew() -> None:
    history = [
        happened(0, "enqueued"),
        happened(4, "cancelled", message="Not needed."),
        happened(1000, "retried"),
        happened(1001, "started", 1),
        happened(1002, "cancel_requested"),
        happened(1003, "cancelled", 1),
    ]
    found = spans(history, State.CANCELLED, at(2000))
    assert told(found) == [
        ("queued", 0, 4, ""),
        ("ended", 4, 1000, ""),
        ("queued", 1000, 1001, ""),
        ("run", 1001, 1003, "cancelled"),
    ]
    drawn = rows(found)
    assert drawn[1].bar == "", "the time in which nothing happened takes no room"
    assert 'x="342.86"' in drawn[2].bar, "the second wait begins at 4 of 7 seconds"


def test_clocks_and_details_that_are_not_quite_right_do_no_harm() -> None:
    history = [
        happened(5, "enqueued"),
        happened(4, "started", 1),
        happened(4, "postponed", 1, retry_at="soon"),
        happened(6, "convert.pinned"),
        happened(7, "started", 2),
        happened(7, "crashed", 2),
    ]
    found = spans(history, State.QUEUED, at(7))
    assert all(one.end >= one.begin for one in found)
    assert len(rows(found)) == len(found)
    assert rows(spans([], State.SUCCEEDED, at(0))) == []


def test_a_wait_is_split_where_a_breaker_began_and_ceased_to_limit() -> None:
    history = [
        happened(0, "enqueued"),
        happened(4, "breaker_opened", dependency="gateway"),
        happened(6, "breaker_tripped", dependency="storage"),
        happened(34, "breaker_half_opened", dependency="gateway"),
        happened(35, "breaker_closed", dependency="gateway"),
        happened(40, "breaker_reset", dependency="storage"),
        happened(41, "started", 1),
        happened(50, "succeeded", 1),
    ]
    found = spans(history, State.SUCCEEDED, at(100))
    assert told(found) == [
        ("queued", 0, 4, ""),
        ("breaker", 4, 6, ""),
        ("breaker", 6, 35, ""),
        ("breaker", 35, 40, ""),
        ("queued", 40, 41, ""),
        ("run", 41, 50, "succeeded"),
    ]
    assert [one.dependencies for one in found[1:4]] == [("gateway",), ("gateway", "storage"), ("storage",)]


def test_a_wait_for_a_breaker_goes_on_and_one_for_a_cool_down_ends_by_itself() -> None:
    open_since = [happened(0, "enqueued"), happened(0, "breaker_opened", dependency="gateway")]
    (waiting,) = spans(open_since, State.QUEUED, at(30))
    assert (waiting.what, waiting.seconds, waiting.going_on) == ("breaker", 30, True)
    asked = happened(3, "breaker_asked_to_wait", dependency="gateway", until=at(8).isoformat())
    cooled = spans([happened(0, "enqueued"), asked], State.QUEUED, at(30))
    assert told(cooled) == [("queued", 0, 3, ""), ("breaker", 3, 8, ""), ("queued", 8, 30, "")]
    assert [one.going_on for one in cooled] == [False, False, True]


def test_a_breakers_event_with_a_time_that_nobody_can_read_draws_nothing() -> None:
    for until in ("never", "2026-01-01T12:00:08", None, 5):
        asked = happened(3, "breaker_asked_to_wait", dependency="gateway", until=until)
        assert told(spans([happened(0, "enqueued"), asked], State.QUEUED, at(30))) == [("queued", 0, 30, "")]
