"""Counts what happens to jobs, for metrics: enqueued, claimed, finished, rescued. `waybill.telemetry.metrics` names it.

What a transaction does is counted when it has committed (`waybill.db.commit_notes`), so nothing is
counted that was rolled back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import asyncpg

from waybill.db.commit_notes import after_commit
from waybill.telemetry import spans, trace_ids
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


def claimed(jobs: Iterable[ClaimedJob]) -> None:
    """Count jobs that this worker has claimed, and how long they had been runnable."""
    for job in jobs:
        JOBS_CLAIMED.labels(job.kind).value += 1
        JOB_QUEUED.labels(job.kind).observe(_seconds(job.started_at - job.run_at), _trace(job))


def run_ended(job: ClaimedJob, seconds: float) -> None:
    JOB_RUNNING.labels(job.kind).observe(seconds, job.trace)


def failed(job: ClaimedJob, outcome: RunOutcome) -> None:
    """Count a run that failed; its end is in the database."""
    if outcome.code is not None and not outcome.released and outcome.state is not State.CANCELLED:
        ATTEMPTS_FAILED.labels(job.kind, outcome.code).value += 1


def finished(job: ClaimedJob, state: State, now: float) -> None:
    """Count a job that ended for good. Its end is in the database; `now` is by the loop's clock."""
    tenant = tenant_label(job.tenant)
    JOBS_FINISHED.labels(job.kind, state.value, tenant).value += 1
    if state is not State.CANCELLED:
        until_claimed = _seconds(job.started_at - job.runnable_since)
        JOB_END_TO_END.labels(job.kind, tenant).observe(until_claimed + now - job.claimed_at, job.trace)


def _seconds(time: timedelta) -> float:
    return max(time.total_seconds(), 0.0)


def _trace(job: ClaimedJob) -> str | None:
    """The trace that a job was enqueued in, if that is recorded."""
    stored = trace_ids.parse(job.traceparent) if spans.on() else None
    return f"{stored.trace_id:032x}" if stored is not None and stored.sampled else None
