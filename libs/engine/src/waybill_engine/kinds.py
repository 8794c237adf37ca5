"""Kinds of jobs, and the rules each kind runs under.

A kind is declared once and shared by both ends: the enqueuer writes its limits into the job's row, and the worker knows
how long to wait between attempts. A worker serves only the kinds it has handlers for, so old and new versions of a
program run side by side. `registry` finds a kind by its name.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from waybill_engine.retry import RetryPolicy
from waybill_engine.rules import Pace

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill.failures import Failure

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


def is_name(text: str) -> bool:
    """Whether a kind, a queue, a dependency or a schedule can have this name."""
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class JobKind:
    name: str
    queue: str = "default"
    """Where its jobs wait unless the enqueuer names another queue."""
    time_limit: float = 300.0
    """Seconds one run may take; a longer run is stopped and charged an attempt."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    max_crashes: int = 3
    """How many workers a job may take down before it is dead-lettered as `WORKER_CRASHED`."""
    dependencies: tuple[str, ...] = ()
    """The services it cannot work without (a mail server, say). While one of them is down, its jobs stay queued; see
    `breaker`. An error that names none of them blames the first."""
    default_cap: Callable[[], int] | None = None
    """How many of its jobs may run at once in the whole cluster, unless an operator decides otherwise; 0 is no cap.
    Workers call it when they start, so it can read a setting. See `caps`."""
    configured: Callable[[JobKind], JobKind] | None = None
    """Makes of it what this process's settings want, such as another number of retries. `kind_named` applies it, so
    that whoever enqueues by name enqueues what the kind's own pipeline would."""

    default_rate: Callable[[], Pace | None] | None = None
    """How many of its jobs may start in some time in the whole cluster, unless an operator decides otherwise; None is
    any number. Workers call it when they start. See `rates`."""

    tells_end: bool = False
    """Publish how its jobs end (`job.succeeded`, `job.failed`, `job.dead_letter`, `job.cancelled`), so that other
    pipelines can act on it. See `endings`."""

    accepts: Callable[[Connection, str, Mapping[str, Any]], Awaitable[None]] | None = None
    """Raises what a job of this tenant with this payload would fail with for good, as far as that is known beforehand.
    Others who enqueue it by name ask, to refuse what cannot work before they accept it."""

    def __post_init__(self) -> None:
        for name in (self.name, self.queue, *self.dependencies):
            if not is_name(name):
                raise ValueError(
                    f"{name!r}: the name of a kind, queue or dependency starts with a lower case letter and has only "
                    "lower case letters, digits and _, at most 63 characters"
                )
        if not 0 < self.time_limit <= 30 * 86400:
            raise ValueError(f"{self.name}: time_limit must be more than 0 seconds and at most 30 days")
        if not (1 <= self.max_crashes <= 1000 and self.retry.max_attempts <= 1000):
            raise ValueError(f"{self.name}: max_crashes and the attempts must be between 1 and 1,000")

    def blamed(self, failure: Failure) -> str | None:
        """Which of its dependencies a failure is about; None if it is about none of them."""
        if failure.dependency is not None:
            return failure.dependency if failure.dependency in self.dependencies else None
        return self.dependencies[0] if failure.blames and self.dependencies else None


SELFTEST = JobKind("selftest", time_limit=60.0, retry=RetryPolicy(retries=2, base=1.0, jitter=1.0))
"""Exercises the engine from end to end: `waybill selftest`."""

KINDS = (SELFTEST,)
"""The engine's own kinds."""
