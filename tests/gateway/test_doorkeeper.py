"""Who may come in: a burst is told before it sends, the slow do not keep parsers idle, and nobody is counted twice."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from waybill_gateway.doorkeeper import Doorkeeper
from waybill_gateway.refusals import Refusal


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def doorkeeper(clock: Clock) -> Doorkeeper:
    return Doorkeeper(processes=1, queue=1, clock=clock)


def test_of_a_burst_only_as_many_as_there_are_places_may_send(doorkeeper: Doorkeeper) -> None:
    with doorkeeper.enter() as first, doorkeeper.enter() as second:
        with pytest.raises(Refusal) as refused, doorkeeper.enter():
            pass
        assert refused.value.status == 503
        with doorkeeper.parse(first), doorkeeper.parse(second), pytest.raises(Refusal), doorkeeper.enter():
            pass
        assert doorkeeper.parsing == 0
    with doorkeeper.enter():
        assert doorkeeper.inside == 1


def test_who_sends_slowly_keeps_nobody_out_and_may_come_too_late(doorkeeper: Doorkeeper, clock: Clock) -> None:
    with doorkeeper.enter() as slow, doorkeeper.enter() as slow_too:
        clock.now = 60.0
        with doorkeeper.enter() as prompt, doorkeeper.parse(prompt):
            with doorkeeper.parse(slow), pytest.raises(Refusal), doorkeeper.parse(slow_too):
                pass
            with doorkeeper.parse(slow_too):
                assert doorkeeper.parsing == 2


def test_a_kept_place_is_not_given_to_somebody_slow(doorkeeper: Doorkeeper, clock: Clock) -> None:
    with doorkeeper.enter() as slow:
        clock.now = 60.0
        with doorkeeper.enter() as first, doorkeeper.enter() as second:
            with pytest.raises(Refusal), doorkeeper.parse(slow):
                pass
            with doorkeeper.parse(first), doorkeeper.parse(second):
                assert doorkeeper.parsing == 2


def test_however_slow_they_are_only_so_many_are_inside(doorkeeper: Doorkeeper, clock: Clock) -> None:
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(doorkeeper.enter())
            clock.now += 60.0
        with pytest.raises(Refusal), doorkeeper.enter():
            pass
    assert doorkeeper.inside == 0
