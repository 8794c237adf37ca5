"""Counts what happens to jobs, for metrics: enqueued, claimed, finished, rescued. `waybill.telemetry.metrics` names it.

What a transaction does is counted when it has committed (`waybill.db.commit_notes`), so nothing is
counted that was rolled back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

import asyncpg

from waybill.db.commit_notes import after_commit
from waybill.telemetry import spans, trace_ids
from waybill.telemetry.instruments import Distribution
from waybill.telemetry.metrics import (
    ATTEMPTS_FAILED,
    BREAKER_TRANSITIONS,
    JOB_END_TO_END,
    JOB_QUEUED,
    JOB_RUNNING,
    JOBS_CLAIMED,
    JOBS_ENQUEUED,
    JOBS_FINISHED,
    JOBS_RESCUED,
)
from waybill.telemetry.tenants import tenant_label
from waybill_engine.models import State

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill_engine.claim import ClaimedJob
    from waybill_engine.finish import RunOutcome

K = TypeVar("K")


def enqueued(connection: Connection, jobs: Iterable[tuple[str, str]]) -> None:
    """Count new jobs, each a kind and a tenant, once the transaction has committed."""
    counts = Counter(jobs)

    def note() -> None:
        for (kind, tenant), count in counts.items():
            JOBS_ENQUEUED.labels(kind, tenant_label(tenant)).value += count

    if counts:
        after_commit(connection, note)


def cancelled(connection: Connection, jobs: Iterable[tuple[str, str]]) -> None:
    """Count jobs that were cancelled while they waited, each a kind and a tenant."""
    counts = Counter(jobs)

    def note() -> None:
        for (kind, tenant), count in counts.items():
            JOBS_FINISHED.labels(kind, State.CANCELLED.value, tenant_label(tenant)).value += count

    if counts:
        after_commit(connection, note)


def rescued(connection: Connection, rows: Sequence[asyncpg.Record]) -> None:
    """Count jobs that were taken back: `kind`, `tenant`, `event` (the verdict), `state`, and `seconds` since they were
    runnable for the first time."""

    def note() -> None:
        for row in rows:
            kind, state, tenant = row["kind"], State(row["state"]), tenant_label(row["tenant"])
            JOBS_RESCUED.labels(kind, row["event"]).value += 1
            if state.final:
                JOBS_FINISHED.labels(kind, state.value, tenant).value += 1
            if state is State.DEAD_LETTER and row["seconds"] is not None:
                JOB_END_TO_END.labels(kind, tenant).observe(max(row["seconds"], 0.0))

    if rows:
        after_commit(connection, note)


def breaker_changed(connection: Connection, dependency: str, to: str) -> None:
    after_commit(connection, BREAKER_TRANSITIONS.labels(dependency, to).inc)


# A worker may claim and end tens of thousands of jobs a second, so it counts them in batches.


def claimed(jobs: Sequence[ClaimedJob]) -> None:
    """Count jobs that this worker has claimed, and how long they had been runnable."""
    for kind, alike in _grouped(jobs, attrgetter("kind")):
        JOBS_CLAIMED.labels(kind).value += len(alike)
        _observe(JOB_QUEUED.labels(kind), [job.waited for job in alike], alike, _trace)


def runs_ended(jobs: Sequence[ClaimedJob]) -> None:
    """Count runs that are over, however they ended."""
    for kind, alike in _grouped(jobs, attrgetter("kind")):
        _observe(JOB_RUNNING.labels(kind), [job.took for job in alike], alike, attrgetter("trace"))


def failed(job: ClaimedJob, outcome: RunOutcome) -> None:
    """Count a run that failed; its end is in the database."""
    if outcome.code is not None and not outcome.released and outcome.state is not State.CANCELLED:
        ATTEMPTS_FAILED.labels(job.kind, outcome.code).value += 1


def finished(jobs: Sequence[ClaimedJob], state: State, now: float) -> None:
    """Count jobs that ended for good. Their ends are in the database; `now` is by the loop's clock."""
    for (kind, tenant), alike in _grouped(jobs, attrgetter("kind", "tenant")):
        label = tenant_label(tenant)
        JOBS_FINISHED.labels(kind, state.value, label).value += len(alike)
        if state is not State.CANCELLED:
            took = [job.waited_in_all + now - job.claimed_at for job in alike]
            _observe(JOB_END_TO_END.labels(kind, label), took, alike, attrgetter("trace"))


def _grouped(jobs: Sequence[ClaimedJob], key: Callable[[ClaimedJob], K]) -> Iterable[tuple[K, Sequence[ClaimedJob]]]:
    if len(keys := set(map(key, jobs))) == 1:
        return [(keys.pop(), jobs)]
    groups: dict[K, list[ClaimedJob]] = {}
    for job in jobs:
        groups.setdefault(key(job), []).append(job)
    return groups.items()


def _observe(
    series: Distribution,
    seconds: Sequence[float],
    jobs: Sequence[ClaimedJob],
    trace_of: Callable[[ClaimedJob], str | None],
) -> None:
    """Count what was observed of each of these jobs; while traces are on, with its trace."""
    if not spans.on():
        series.observe_all(seconds)
        return
    for value, job in zip(seconds, jobs, strict=True):
        series.observe(value, trace_of(job))


def _trace(job: ClaimedJob) -> str | None:
    """The trace that a job was enqueued in, if that is recorded."""
    stored = trace_ids.parse(job.traceparent)
    return f"{stored.trace_id:032x}" if stored is not None and stored.sampled else None
