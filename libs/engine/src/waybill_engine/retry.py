"""How long to wait before another attempt: policies for jobs, and a decorator for short waits inside one process."""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import structlog
import tenacity

from waybill.log.exceptions import error_words

log = structlog.get_logger()

P = ParamSpec("P")
T = TypeVar("T")


_RETRIES, _BASE, _CAP = 3, 5.0, 3600.0

_LONGEST = 30 * 86400.0
"""Thirty days, in seconds."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`base × 2^n + random(0..jitter)` seconds before retry n (from 0), never more than `cap`.

    `jitter` is in seconds; `jitter_share` adds a part of the delay itself (with 0.5, up to half of it). Jitter keeps
    jobs that failed together from coming back together.

    A `schedule` replaces the formula with a list: `RetryPolicy(schedule=(5, 300, 7200))` waits 5 seconds, then 5
    minutes, then 2 hours, each with jitter, and retries three times. `retries`, `base` and `cap` belong to the formula.
    """

    retries: int = _RETRIES
    base: float = _BASE
    jitter: float = 5.0
    jitter_share: float = 0.0
    cap: float = _CAP
    schedule: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.schedule is not None:
            self._follow(tuple(self.schedule))
        if not all(math.isfinite(one) for one in (self.base, self.jitter, self.jitter_share, self.cap)):
            raise ValueError("a retry policy must have finite numbers")
        if self.retries < 0 or min(self.base, self.jitter, self.jitter_share, self.cap) < 0:
            raise ValueError("a retry policy must not have negative numbers")

    def _follow(self, schedule: tuple[float, ...]) -> None:
        if not schedule:
            raise ValueError("a retry schedule needs at least one delay; for no retries, write RetryPolicy(retries=0)")
        if not all(0 <= delay <= _LONGEST for delay in schedule):
            raise ValueError(f"the delays of a retry schedule must be between 0 seconds and 30 days: {schedule}")
        if self.retries not in (_RETRIES, len(schedule)) or (self.base, self.cap) != (_BASE, _CAP):
            raise ValueError("a retry schedule replaces retries, base and cap; leave them out")
        # A tuple, because a policy is compared and hashed with its kind.
        object.__setattr__(self, "schedule", schedule)
        object.__setattr__(self, "retries", len(schedule))

    @property
    def max_attempts(self) -> int:
        return self.retries + 1

    def delay(self, retry: int, rng: random.Random | None = None) -> float:
        """Seconds to wait before retry number `retry`, counted from 0."""
        chance = (rng or _rng).random()
        if self.schedule is not None:
            # A job that was enqueued when the schedule was longer repeats its last delay.
            plain = self.schedule[min(retry, len(self.schedule) - 1)]
            return plain + (self.jitter + self.jitter_share * plain) * chance
        # 2^62 seconds is beyond any cap, and a larger exponent would overflow.
        plain = min(self.cap, self.base * 2.0 ** min(retry, 62))
        return min(self.cap, plain + (self.jitter + self.jitter_share * plain) * chance)


_rng = random.Random()  # noqa: S311 - spreads load, guards nothing


def retrying(
    policy: RetryPolicy, on: type[Exception] | tuple[type[Exception], ...]
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
    """Repeat a short async call in this process while it raises `on`. The last error is raised as it is.

    For work that may take long, or must survive this process, enqueue a job instead.
    """

    def note(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        wait = state.next_action.sleep if state.next_action else 0.0
        log.warning(
            "retrying",
            call=getattr(state.fn, "__qualname__", "?"),
            error=error_words(error) if error else None,
            wait=round(wait, 2),
        )

    return tenacity.retry(
        retry=tenacity.retry_if_exception_type(on),
        stop=tenacity.stop_after_attempt(policy.max_attempts),
        wait=lambda state: policy.delay(state.attempt_number - 1),
        before_sleep=note,
        reraise=True,
    )
