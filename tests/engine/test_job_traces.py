"""A job's life is one trace: enqueued, waited, every run, and whatever brought it back."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.engine import row, running_job
from support.otlp import Collector, ReceivedSpan, traced
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import GatewayUnavailable
from waybill.storage import LocalStorage
from waybill.telemetry import spans, traces
from waybill.telemetry.trace_ids import run_span_id, trace_id_of
from waybill_engine import (
    JobContext,
    JobKind,
    NewJob,
    RetryPolicy,
    enqueue,
    enqueue_family,
    enqueue_many,
    handles,
    registry,
)
from waybill_engine.control import cancel, retry
from waybill_engine.rescue import rescue_worker
from waybill_engine.testing import make_due, run_inline, run_waiting

FLAKY = JobKind("flaky", retry=RetryPolicy(retries=3, base=0.01, jitter=0))
NEXT = JobKind("next")


def double(number: int) -> int:
    return 2 * number


@pytest.fixture(autouse=True)
def _handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_handlers", {})
    monkeypatch.setattr(registry, "_kinds", {})

    @handles(FLAKY)
    async def flaky(payload: dict[str, Any], job: JobContext) -> None:
        with spans.span("call", kind="client"):
            if job.attempt <= payload.get("failures", 0):
                raise GatewayUnavailable("Mr Secret's invoice")
        if payload.get("next"):
            await job.run_blocking(double, 21)
            async with job.complete() as session:
                await enqueue(session, NewJob(NEXT, job.tenant))

    @handles(NEXT)
    async def following(payload: dict[str, Any], job: JobContext) -> None:
        pass


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with traced() as found:
        yield found


def stopped(collector: Collector) -> list[ReceivedSpan]:
    """Everything, in the order in which it began."""
    traces.stop()
    return sorted(collector.spans, key=lambda span: (span.begun, span.ended))


def span_of(job_id: uuid.UUID, token: int) -> str:
    return f"{run_span_id(job_id, token):016x}"


async def test_one_trace_holds_the_life_of_a_job_and_of_the_next_one(
    db: Database, hot: Connection, storage: LocalStorage, collector: Collector
) -> None:
    with spans.span("upload", kind="server"):
        job_id = (await enqueue(hot, NewJob(FLAKY, "acme", {"failures": 1, "next": True}))).id
    await run_inline(db, storage, job_id)
    await make_due(hot, job_id)
    await run_waiting(db, storage)
    found = stopped(collector)
    assert {span.trace_id for span in found} == {trace_id_of(job_id, (await row(hot, job_id))["traceparent"])}
    upload, produced = found[0], next(span for span in found if span.name == "enqueue flaky")
    assert (produced.kind, produced.parent_id) == ("producer", upload.span_id)
    assert produced.attributes == {
        "messaging.system": "waybill",
        "messaging.operation.type": "send",
        "messaging.operation.name": "enqueue",
        "messaging.destination.name": "default",
        "messaging.message.id": str(job_id),
        "job.id": str(job_id),
        "tenant.id": "acme",
        "job.kind": "flaky",
    }
    failed, again = (span for span in found if span.name == "process flaky")
    assert (failed.kind, failed.parent_id, failed.span_id) == ("consumer", produced.span_id, span_of(job_id, 1))
    assert (failed.failed, failed.attributes["error.type"], failed.links) == (True, "GW_5XX", ())
    assert (again.failed, again.attributes["job.attempt"], again.parent_id) == (False, 2, produced.span_id)
    assert again.links == ((failed.trace_id, failed.span_id),)
    assert again.attributes["messaging.operation.type"] == "process"
    waits = [span for span in found if span.name == "wait default" and span.attributes["job.id"] == str(job_id)]
    assert [wait.parent_id for wait in waits] == [produced.span_id] * 2
    assert all(produced.begun <= wait.ended for wait in waits)
    inside = {span.name: span for span in found if span.parent_id == again.span_id}
    assert set(inside) == {"call", "run double", "complete"}
    assert {span.attributes["job.id"] for span in inside.values()} == {str(job_id)}
    following = next(span for span in found if span.name == "enqueue next")
    assert following.parent_id == inside["complete"].span_id
    assert next(span for span in found if span.name == "process next").parent_id == following.span_id
    assert "Secret" not in repr(found)


async def test_a_job_that_nobody_traced_is_a_trace_of_its_own_under_its_own_id(
    db: Database, hot: Connection, storage: LocalStorage
) -> None:
    job_id = (await enqueue(hot, NewJob(FLAKY, "acme", {"failures": 1}))).id
    assert (await row(hot, job_id))["traceparent"] is None
    with traced() as collector:
        await run_inline(db, storage, job_id)
        await make_due(hot, job_id)
        await run_inline(db, storage, job_id)
        found = stopped(collector)
    assert {span.trace_id for span in found} == {job_id.hex}
    first, second = (span for span in found if span.name == "process flaky")
    assert (first.parent_id, second.parent_id) == (None, None)
    assert second.links == ((job_id.hex, first.span_id),)


async def test_children_and_large_batches_are_traces_of_their_own_that_link_back(
    db: Database, hot: Connection, storage: LocalStorage, collector: Collector
) -> None:
    with spans.span("upload"):
        family = await enqueue_family(hot, NewJob(NEXT, "acme"), [NewJob(FLAKY, "acme") for _ in range(2)])
        many = await enqueue_many(hot, [NewJob(NEXT, "acme") for _ in range(100)])
    await run_waiting(db, storage)
    found = stopped(collector)
    runs = {span.attributes["job.id"]: span for span in found if span.kind == "consumer"}
    parent, produced = runs[str(family.parent.id)], next(span for span in found if span.name == "enqueue next")
    assert (parent.trace_id, parent.parent_id) == (found[0].trace_id, produced.span_id)
    for child in family.children:
        run = runs[str(child.id)]
        assert (run.trace_id, run.parent_id, run.links) == (
            child.id.hex,
            None,
            ((parent.trace_id, produced.span_id),),
        )
    batch = next(span for span in found if span.attributes.get("messaging.batch.message_count") == 100)
    assert batch.trace_id == parent.trace_id
    for job in many:
        run = runs[str(job.id)]
        assert (run.trace_id, run.links) == (job.id.hex, ((batch.trace_id, batch.span_id),))


async def test_a_rescue_tells_of_the_run_that_was_lost(hot: Connection, collector: Collector) -> None:
    worker, claimed = await running_job(hot)
    await rescue_worker(hot, worker.id)
    found = {span.name: span for span in stopped(collector)}
    lost, rescued = found["process work"], found["rescue work"]
    assert lost.span_id == span_of(claimed.id, claimed.token)
    assert (lost.failed, lost.attributes["error.type"], lost.attributes["job.attempt"]) == (True, "WORKER_CRASHED", 1)
    assert rescued.links == ((lost.trace_id, lost.span_id),)
    assert (rescued.trace_id, rescued.parent_id) == (lost.trace_id, lost.parent_id)
    assert (rescued.attributes["waybill.verdict"], rescued.attributes["job.id"]) == ("crashed", str(claimed.id))


async def test_a_manual_retry_links_to_the_last_run_and_to_who_asked(hot: Connection, collector: Collector) -> None:
    worker, claimed = await running_job(hot)
    await rescue_worker(hot, worker.id)
    await cancel(hot, claimed.id)
    with spans.span("POST /retry", kind="server"):
        await retry(hot, claimed.id)
    found = {span.name: span for span in stopped(collector)}
    asked, retried, lost = found["POST /retry"], found["retry work"], found["process work"]
    assert retried.links == ((lost.trace_id, lost.span_id), (asked.trace_id, asked.span_id))
    assert (retried.trace_id, retried.attributes["job.id"]) == (lost.trace_id, str(claimed.id))


async def test_each_run_can_be_a_trace_of_its_own(db: Database, hot: Connection, storage: LocalStorage) -> None:
    with traced(trace_jobs="link") as collector:
        with spans.span("upload"):
            job_id = (await enqueue(hot, NewJob(FLAKY, "acme", {"failures": 1}))).id
        await run_inline(db, storage, job_id)
        await make_due(hot, job_id)
        await run_inline(db, storage, job_id)
        found = stopped(collector)
    produced = next(span for span in found if span.kind == "producer")
    first, second = (span for span in found if span.name == "process flaky")
    assert len({produced.trace_id, first.trace_id, second.trace_id}) == 3
    assert first.links == ((produced.trace_id, produced.span_id),)
    assert second.links == ((produced.trace_id, produced.span_id), (first.trace_id, first.span_id))
    assert {span.trace_id for span in found if span.name == "wait default"} == {first.trace_id, second.trace_id}


async def test_a_failing_run_is_exported_whatever_is_sampled(
    db: Database, hot: Connection, storage: LocalStorage
) -> None:
    with traced(trace_sample_ratio=0) as collector:
        job_id = (await enqueue(hot, NewJob(FLAKY, "acme", {"failures": 1}))).id
        await run_inline(db, storage, job_id)
        await make_due(hot, job_id)
        await run_inline(db, storage, job_id)
        found = {span.name: span for span in stopped(collector)}
    assert set(found) == {"wait default", "process flaky", "call"}
    assert (found["process flaky"].attributes["job.attempt"], found["call"].attributes["error.type"]) == (1, "GW_5XX")


async def test_a_caller_may_bring_the_trace_along(hot: Connection, collector: Collector) -> None:
    given = f"00-{'a' * 32}-{'b' * 16}-01"
    job_id = (await enqueue(hot, NewJob(FLAKY, "acme", traceparent=given, tracestate="v=1"))).id
    job = await row(hot, job_id)
    assert (job["traceparent"], job["tracestate"]) == (given, "v=1")
