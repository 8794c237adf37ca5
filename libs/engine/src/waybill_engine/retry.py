"""How long to wait before another attempt: policies for jobs, and a decorator for short waits inside one process."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import structlog
import tenacity

log = structlog.get_logger()

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`base × 2^n + random(0..jitter)` seconds before retry n (from 0), never more than `cap`.

    `jitter` is in seconds; `jitter_share` adds a part of the delay itself (with 0.5, up to half of it). Jitter keeps
    jobs that failed together from coming back together.
    """

    retries: int = 3
    base: float = 5.0
    jitter: float = 5.0
    jitter_share: float = 0.0
    cap: float = 3600.0

    def __post_init__(self) -> None:
        if self.retries < 0 or min(self.base, self.jitter, self.jitter_share, self.cap) < 0:
            raise ValueError("a retry policy must not have negative numbers")

    @property
    def max_attempts(self) -> int:
        return self.retries + 1

    def delay(self, retry: int, rng: random.Random | None = None) -> float:
        """Seconds to wait before retry number `retry`, counted from 0."""
        # 2^62 seconds is beyond any cap, and a larger exponent would overflow.
        plain = min(self.cap, self.base * 2.0 ** min(retry, 62))
        spread = self.jitter + self.jitter_share * plain
        chance = (rng or _rng).random()
        return min(self.cap, plain + spread * chance)


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
        log.warning("retrying", call=getattr(state.fn, "__qualname__", "?"), error=str(error), wait=round(wait, 2))

    return tenacity.retry(
        retry=tenacity.retry_if_exception_type(on),
        stop=tenacity.stop_after_attempt(policy.max_attempts),
        wait=lambda state: policy.delay(state.attempt_number - 1),
        before_sleep=note,
        reraise=True,
    )
