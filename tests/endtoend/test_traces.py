"""One trace holds a job's life: upload, a run that fails, one whose worker is killed, and one that succeeds.

The questions go to a real Jaeger if there is one (`support.jaeger`), and otherwise to the tests' own receiver.
"""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from endtoend.conftest import MakeStack
from support.customers import Customer
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.jaeger import trace_backend
from support.otlp import ReceivedSpan
from support.patience import eventually
from support.sick_gateway import answering, sick_gateway, stalling
from support.stack import Stack
from support.workers import QUICK
from waybill.telemetry.trace_ids import run_span_id
from waybill_engine.testing import make_due

Come = Callable[[Stack], Customer]

pytestmark = pytest.mark.timeout(180)

JOB = ("job.id", "tenant.id", "job.kind")


async def test_one_trace_shows_the_whole_life_of_a_job(make_stack: MakeStack, customer: Come, tmp_path: Path) -> None:
    invoice = replace(make_invoice(1, 3), buyer_name="PT ZqPembelix")
    async with trace_backend(tmp_path) as backend:
        stack = await make_stack("api", "gateway", WAYBILL_OTLP_ENDPOINT=backend.endpoint, **QUICK)
        someone = customer(stack)

        # The first run fails, and its worker is told to stop.
        async with sick_gateway(answering(500)) as broken:
            stack.start("worker", WAYBILL_GATEWAY_URL=broken.url, WAYBILL_GATEWAY_SECRET="")
            job_id = (await someone.upload("ZqDokumenx.pdf", print_invoice(invoice, REFERENCE)))["id"]

            async def failed() -> bool:
                return bool(await stack.sql("SELECT FROM jobs WHERE error_code = 'GW_5XX' AND state = 'scheduled'"))

            await eventually(failed, what="the first run has failed")
            await leave(stack, "worker")

        # The second run's worker is killed.
        async with sick_gateway(stalling) as silent:
            await stack.run(lambda connection: make_due(connection, uuid.UUID(job_id)))
            stack.start("worker", WAYBILL_GATEWAY_URL=silent.url, WAYBILL_GATEWAY_SECRET="")

            async def called() -> bool:
                return bool(silent.requests)

            await eventually(called, what="the second run calls the gateway")
            stack.stop("worker")

        # The third succeeds.
        stack.start("worker")
        assert (await someone.ended(job_id, within=120))["status"] == "complete"
        for name in ("worker", "api", "gateway"):
            await leave(stack, name)

        async def arrived() -> list[ReceivedSpan] | None:
            traces = await backend.traces_of(job_id, "waybill-worker")
            assert len(traces) <= 1
            names = [span.name for span in traces[0]] if traces else []
            wanted = {"POST /api/upload", "enqueue convert_pdf", "rescue convert_pdf"}
            return traces[0] if names.count("process convert_pdf") == 3 and wanted <= set(names) else None

        found = await eventually(arrived, what="all spans have arrived")
    assert found is not None
    check(found, uuid.UUID(job_id))
    assert "Zq" not in repr(found)
    assert stack.settings["WAYBILL_GATEWAY_SECRET"] not in repr(found)


def check(found: list[ReceivedSpan], job_id: uuid.UUID) -> None:
    """What the trace must show, wherever it is stored."""
    assert {span.service for span in found} == {"waybill-api", "waybill-worker", "waybill-gateway"}
    ids = {span.span_id: span for span in found}
    assert len(ids) == len(found), "no span came twice"

    (root,) = (span for span in found if span.parent_id is None)
    assert (root.name, root.service, root.kind) == ("POST /api/upload", "waybill-api", "server")
    produced = one(found, "enqueue convert_pdf")
    assert (produced.kind, produced.attributes["messaging.system"]) == ("producer", "waybill")
    assert produced.attributes["messaging.message.id"] == str(job_id)
    assert ids[str(produced.parent_id)].name == "upload document"

    runs = sorted((span for span in found if span.name == "process convert_pdf"), key=lambda span: span.begun)
    tokens = [
        next(token for token in range(1, 20) if run_span_id(job_id, token) == int(run.span_id, 16)) for run in runs
    ]
    assert tokens == [1, 2, 3]
    assert {run.parent_id for run in runs} == {produced.span_id}
    assert {run.kind for run in runs} == {"consumer"}
    first, killed, last = runs
    assert [run.attributes["job.attempt"] for run in runs] == [1, 1, 2], "the gateway let the first one down"
    assert [run.attributes.get("error.type") for run in runs] == ["GW_5XX", "WORKER_CRASHED", None]
    assert [run.failed for run in runs] == [True, True, False]
    assert first.links == ()
    assert killed.links == ((first.trace_id, first.span_id),)
    assert last.links == ((killed.trace_id, killed.span_id),)
    rescued = one(found, "rescue convert_pdf")
    assert rescued.links == ((killed.trace_id, killed.span_id),)
    waits = [span for span in found if span.name == f"wait {produced.attributes['messaging.destination.name']}"]
    assert {span.parent_id for span in waits} == {produced.span_id}
    assert len(waits) in (2, 3), "the killed worker took one with it, unless it had been sent already"

    # The gateway's part hangs below the last run's call, and all of it is about the job.
    served = [span for span in found if span.service == "waybill-gateway"]
    above = [ancestors(span, ids) for span in served]
    assert all(last.span_id in each for each in above)
    named = [span for span in found if span is not root]
    assert [span.name for span in named if span.attributes.get("job.id") != str(job_id)] == []
    assert all(all(name in span.attributes for name in JOB) for span in named)


def one(found: list[ReceivedSpan], name: str) -> ReceivedSpan:
    (span,) = (span for span in found if span.name == name)
    return span


def ancestors(span: ReceivedSpan, ids: dict[str, ReceivedSpan]) -> list[str]:
    found = []
    while span.parent_id is not None:
        found.append(span.parent_id)
        span = ids[span.parent_id]
    return found


async def leave(stack: Stack, name: str) -> None:
    """Tell a service to stop, and wait: its last spans must be on their way by then."""
    os.kill(stack.pid(name), signal.SIGTERM)
    await asyncio.to_thread(stack.wait, name)
