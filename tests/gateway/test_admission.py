"""Who may come in: a burst is told before it sends, the slow do not keep parsers idle, and nobody is counted twice."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from waybill_gateway.admission import Admission
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
def admission(clock: Clock) -> Admission:
    return Admission(processes=1, queue=1, clock=clock)


def test_of_a_burst_only_as_many_as_there_are_places_may_send(admission: Admission) -> None:
    with admission.enter() as first, admission.enter() as second:
        with pytest.raises(Refusal) as refused, admission.enter():
            pass
        assert refused.value.status == 503
        with admission.parse(first), admission.parse(second), pytest.raises(Refusal), admission.enter():
            pass
        assert admission.parsing == 0
    with admission.enter():
        assert admission.inside == 1


def test_who_sends_slowly_keeps_nobody_out_and_may_come_too_late(admission: Admission, clock: Clock) -> None:
    with admission.enter() as slow, admission.enter() as slow_too:
        clock.now = 60.0
        with admission.enter() as prompt, admission.parse(prompt):
            with admission.parse(slow), pytest.raises(Refusal), admission.parse(slow_too):
                pass
            with admission.parse(slow_too):
                assert admission.parsing == 2


def test_a_kept_place_is_not_given_to_somebody_slow(admission: Admission, clock: Clock) -> None:
    with admission.enter() as slow:
        clock.now = 60.0
        with admission.enter() as first, admission.enter() as second:
            with pytest.raises(Refusal), admission.parse(slow):
                pass
            with admission.parse(first), admission.parse(second):
                assert admission.parsing == 2


def test_however_slow_they_are_only_so_many_are_inside(admission: Admission, clock: Clock) -> None:
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(admission.enter())
            clock.now += 60.0
        with pytest.raises(Refusal), admission.enter():
            pass
    assert admission.inside == 0
