"""The spans of one run: how long its job waited, the run itself, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from waybill.errors import Code, LeaseLost
from waybill.telemetry import spans
from waybill_engine.claim import ClaimedJob
from waybill_engine.finish import RunOutcome
from waybill_engine.job_traces import JobTrace, process_attributes

SUCCEEDED: Mapping[str, spans.Value] = {"waybill.outcome": "succeeded"}


@contextmanager
def traced(claimed: ClaimedJob) -> Iterator[spans.Span]:
    """Around a run: everything inside is a part of its span."""
    trace = JobTrace.of(claimed.id, claimed.traceparent, claimed.tracestate)
    span_id, trace_id, sampled = trace.run_ids(claimed.token)
    attempt, job_id = claimed.attempts + 1, str(claimed.id)
    with (
        trace.joined(),
        spans.about_job(job_id=job_id, tenant=claimed.tenant, kind=claimed.kind, attempt=attempt),
        spans.run_span(
            f"process {claimed.kind}",
            span_id=span_id,
            trace_id=trace_id,
            sampled=sampled,
            attributes=process_attributes(job_id, claimed.queue),
            links=trace.links_of_run(claimed.token),
        ) as span,
    ):
        # The database says how long it was, and this machine when it ended, so that it fits the run beside it.
        now = time.time_ns()
        span.beside(f"wait {claimed.queue}", begun=now - int(claimed.waited * 1e9), ended=now)
        yield span


def note_outcome(span: spans.Span, outcome: RunOutcome | None, *, completed: bool, let_down: bool) -> None:
    """Say on a run's span how it ended, if it did not simply succeed.

    If a dependency let it down, the database has yet to decide whether that costs an attempt.
    """
    if completed:
        span.set(SUCCEEDED)
    elif outcome is None:
        # Whoever took the job back tells of this run, because they cannot know that this worker is still alive.
        span.disown()
        span.set({"waybill.outcome": "lease_lost"})
        span.fail(LeaseLost.__name__)
    else:
        span.set({"waybill.outcome": "let_down" if let_down else outcome.event})
        if outcome.code is not None and outcome.code != Code.CANCELLED:
            span.fail(str(outcome.code))
