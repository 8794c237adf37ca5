"""The first sentence of the page: what is wrong, the worst first, and where to look."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from waybill.ids import new_id
from waybill.messages.language import languages
from waybill_api.ops.durations import duration
from waybill_api.ops.facts import Facts
from waybill_api.ops.health import HealthFinding, findings
from waybill_api.ops.looks import Looks
from waybill_engine.breaker_control import BreakerStatus
from waybill_engine.breaker_models import BreakerState
from waybill_engine.overview import DeadLetterGroup, DeadLetterOverview, KnownQueue, LiveWorker
from waybill_engine.samples import KindSample, Sample
from waybill_engine.throughput import Finished

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
QUEUE = KnownQueue("default", None, None, ["convert_pdf"], ["convert_pdf"])
WORKER = LiveWorker(
    new_id(), "w", "h", 1, None, "1", ["default"], ["convert_pdf"], 10, False, "active", NOW, NOW, False, 0
)
BREAKER = BreakerStatus("gateway", BreakerState.CLOSED, None, None, 0, None, ["convert_pdf"], 5, 0, None, 0)
KIND = KindSample("convert_pdf", 0, 0, 0, 0, None)
SAMPLE = Sample(NOW, 3.0, [KIND], [], [], {}, {}, [], frozenset())
WELL = Facts(NOW, SAMPLE, [], [], [], [QUEUE], [WORKER], [BREAKER], [], [], DeadLetterOverview([], more=False))
LATE = replace(KIND, queued=9, oldest_runnable_at=NOW - timedelta(minutes=7))


def wrong(**changed: Any) -> list[HealthFinding]:
    return findings(replace(WELL, **changed), 15.0)


def keys(found: list[HealthFinding]) -> list[str]:
    return [one.says.key.removeprefix("ops.health.") for one in found]


def sampled(*kinds: KindSample, **changed: Any) -> Sample:
    return replace(SAMPLE, kinds=list(kinds), **changed)


def test_nothing_is_said_when_everything_is_well() -> None:
    assert wrong() == []


def test_each_trouble_is_named() -> None:
    assert keys(wrong(sample=None)) == ["no_sample"]
    assert keys(wrong(sample=replace(SAMPLE, age=200.0))) == ["old_sample"]
    assert keys(wrong(workers=[])) == ["no_worker"]
    assert keys(wrong(workers=[replace(WORKER, state="draining")])) == ["no_worker"]
    assert keys(wrong(workers=[WORKER, replace(WORKER, expired=True)])) == ["silent"]
    until = NOW + timedelta(seconds=30)
    assert keys(wrong(breakers=[replace(BREAKER, state=BreakerState.OPEN, open_until=until)])) == ["open"]
    assert keys(wrong(breakers=[replace(BREAKER, state=BreakerState.OPEN)])) == ["tripped"]
    assert keys(wrong(breakers=[replace(BREAKER, state=BreakerState.HALF_OPEN)])) == ["half_open"]
    assert keys(wrong(breakers=[replace(BREAKER, cooldown_until=until)])) == ["cooling"]
    assert keys(wrong(breakers=[replace(BREAKER, cooldown_until=NOW)])) == []
    assert keys(wrong(queues=[replace(QUEUE, paused_at=NOW)])) == ["paused"]
    assert keys(wrong(sample=sampled(replace(KIND, kind="new", queued=2)))) == ["not_served"]
    assert keys(wrong(sample=sampled(LATE))) == ["late"]
    group = DeadLetterGroup("convert_pdf", "GW_5XX", 4, NOW, new_id(), None)
    assert keys(wrong(dead_letters=DeadLetterOverview([group], more=False))) == ["dead_letters"]
    assert keys(wrong(dead_letters=DeadLetterOverview([group], more=True))) == ["many_dead_letters"]


def test_a_kind_of_which_most_jobs_fail_is_named() -> None:
    def ended(**jobs: int) -> list[Finished]:
        return [Finished("convert_pdf", outcome, count) for outcome, count in jobs.items()]

    (found,) = wrong(finished_kinds=ended(succeeded=3, failed=4, dead_letter=3))
    assert (found.says.key, found.says.params["failed"], found.says.params["count"]) == ("ops.health.failing", 7, 10)
    assert wrong(finished_kinds=ended(succeeded=5, failed=5)) == [], "half of them is not most"
    assert wrong(finished_kinds=ended(succeeded=1, failed=8)) == [], "so few say little"
    assert wrong(finished_kinds=ended(succeeded=10, failed=4, cancelled=50)) == [], "somebody wanted that"


def test_what_stands_still_comes_first_and_nothing_is_said_twice() -> None:
    found = wrong(
        queues=[replace(QUEUE, paused_at=NOW)],
        breakers=[replace(BREAKER, state=BreakerState.OPEN, blocked=9)],
        sample=sampled(LATE),
    )
    assert keys(found) == ["tripped", "paused"], "why it is late is said already"
    assert [one.bad for one in found] == [True, False]
    for language in languages().values():
        for one in found:
            assert language.say(one.says.key, **one.says.params)


def test_durations_are_as_precise_as_they_deserve() -> None:
    said = [duration(seconds, languages()["en"]) for seconds in (-1, 0.12, 0.9996, 3.24, 45.4, 600, 7200, 90_000, 4e5)]
    assert said == ["0 ms", "120 ms", "1.0 s", "3.2 s", "45 s", "10 min", "2 h", "25 h", "5 d"]
    assert duration(3.24, languages()["id"]) == "3,2 dtk"


def test_watching_is_one_look_for_ten_minutes() -> None:
    now = 0.0
    looks = Looks(clock=lambda: now)
    assert [looks.is_new(who) for who in ("a", "a", "b")] == [True, False, True]
    now = 601.0
    assert looks.is_new("a")
