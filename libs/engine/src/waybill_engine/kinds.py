"""What kinds of jobs there are, and the rules each kind runs under.

A kind is declared once, in the library, because both ends need it: whoever enqueues writes its limits into the row,
whoever runs it knows how long to wait between tries. A worker serves the kinds it has handlers for and leaves the
rest alone, so old and new versions run side by side.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from waybill_engine.retry import RetryPolicy

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


def is_name(text: str) -> bool:
    """Whether a kind, a queue or a dependency can be called so."""
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class JobKind:
    name: str
    queue: str = "default"
    """Where its jobs wait unless the enqueuer says otherwise."""
    time_limit: float = 300.0
    """Seconds one run may take; then it is stopped and charged an attempt."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    max_crashes: int = 3
    """How many workers a job may take down before it is given up as `WORKER_CRASHED`."""
    dependency: str | None = None
    """What it cannot do without (`converter`, say). While that is down, its jobs wait; see `breaker`."""

    def __post_init__(self) -> None:
        for what in (self.name, self.queue, self.dependency):
            if what is not None and not is_name(what):
                raise ValueError(
                    f"{what!r}: kinds, queues and dependencies are lower case letters, digits and _, at most 63"
                )
        if not 0 < self.time_limit <= 30 * 86400:
            raise ValueError(f"{self.name}: time_limit is more than 0 seconds and at most 30 days")
        if not (1 <= self.max_crashes <= 1000 and self.retry.max_attempts <= 1000):
            raise ValueError(f"{self.name}: between 1 and 1,000 crashes and attempts")


SELFTEST = JobKind("selftest", time_limit=60.0, retry=RetryPolicy(retries=2, base=1.0, jitter=1.0))
"""Exercises the engine from end to end without a document: `waybill selftest`."""
