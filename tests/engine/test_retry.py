"""Waiting before trying again."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill_engine import JobKind
from waybill_engine.retry import RetryPolicy, retrying


def test_converting_waits_five_ten_twenty_seconds_and_up_to_five_more() -> None:
    policy = RetryPolicy(retries=3, base=5, jitter=5)
    for retry, plain in enumerate((5, 10, 20)):
        waits = [policy.delay(retry) for _ in range(500)]
        assert plain <= min(waits) < plain + 0.5
        assert plain + 4.5 < max(waits) <= plain + 5


def test_jitter_can_be_a_share_of_the_delay() -> None:
    policy = RetryPolicy(base=2, jitter=0, jitter_share=0.5)
    waits = [policy.delay(2) for _ in range(500)]
    assert min(waits) >= 8
    assert max(waits) <= 12


@given(retry=st.integers(0, 10_000), base=st.floats(0, 1e6), cap=st.floats(0, 1e6), seed=st.integers())
def test_no_wait_is_longer_than_the_cap_however_often_it_failed(retry: int, base: float, cap: float, seed: int) -> None:
    assert 0 <= RetryPolicy(base=base, cap=cap).delay(retry, random.Random(seed)) <= cap


def test_a_policy_has_no_negative_numbers() -> None:
    with pytest.raises(ValueError, match="negative"):
        RetryPolicy(retries=-1)


WEBHOOKS = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)


def test_a_schedule_says_each_delay_and_how_many_retries_there_are() -> None:
    policy = RetryPolicy(schedule=WEBHOOKS, jitter=0)
    assert (policy.retries, policy.max_attempts) == (9, 10)
    assert tuple(policy.delay(retry) for retry in range(9)) == WEBHOOKS, "no cap shortens what was written down"


def test_the_delays_of_a_schedule_have_jitter() -> None:
    policy = RetryPolicy(schedule=(100,), jitter=10, jitter_share=0.2)
    waits = [policy.delay(0) for _ in range(500)]
    assert 100 <= min(waits) < 103
    assert 127 < max(waits) <= 130


def test_a_job_that_has_more_attempts_than_its_schedule_repeats_the_last_delay() -> None:
    assert RetryPolicy(schedule=[1, 20], jitter=0).delay(7) == 20


def test_policies_with_the_same_schedule_are_the_same() -> None:
    assert RetryPolicy(schedule=[1, 20]) == RetryPolicy(schedule=(1, 20))
    assert hash(JobKind("send", retry=RetryPolicy(schedule=[1, 20])))
    assert replace(RetryPolicy(schedule=[1, 20]), jitter=0).delay(1) == 20


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"schedule": ()}, "retries=0"),
        ({"schedule": (5, -1)}, "between 0 seconds and 30 days"),
        ({"schedule": (5, math.nan)}, "between 0 seconds and 30 days"),
        ({"schedule": (5, math.inf)}, "between 0 seconds and 30 days"),
        ({"schedule": (5,), "retries": 2}, "leave them out"),
        ({"schedule": (5,), "base": 1.0}, "leave them out"),
        ({"schedule": (5,), "cap": 60.0}, "leave them out"),
        ({"base": math.inf}, "finite"),
    ],
)
def test_a_schedule_that_cannot_be_meant_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        RetryPolicy(**wrong)


def test_a_kind_with_too_long_a_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="1,000"):
        JobKind("send", retry=RetryPolicy(schedule=[1] * 1000))


async def test_a_short_call_is_repeated_while_it_raises_what_may_pass() -> None:
    calls = 0

    @retrying(RetryPolicy(retries=3, base=0, jitter=0), on=OSError)
    async def flaky() -> int:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise OSError("not yet")
        return calls

    assert await flaky() == 3


async def test_the_last_error_comes_through_as_it_is() -> None:
    calls = 0

    @retrying(RetryPolicy(retries=2, base=0, jitter=0), on=OSError)
    async def broken() -> None:
        nonlocal calls
        calls += 1
        raise OSError(f"call {calls}")

    with pytest.raises(OSError, match="call 3"):
        await broken()


async def test_what_was_not_named_is_not_repeated() -> None:
    calls = 0

    @retrying(RetryPolicy(retries=2, base=0, jitter=0), on=OSError)
    async def broken() -> None:
        nonlocal calls
        calls += 1
        raise ValueError

    with pytest.raises(ValueError):
        await broken()
    assert calls == 1
