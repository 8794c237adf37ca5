"""Spans as the code sees them, and as a collector receives them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from opentelemetry import trace

from support.otlp import Collector, ReceivedSpan, collector
from waybill.config import ProcessSettings
from waybill.errors import NotPdf
from waybill.telemetry import spans, traces

JOB = "0199a3a0-0000-7000-8000-000000000001"
Export = Callable[[], dict[str, ReceivedSpan]]


@pytest.fixture
def received() -> Iterator[Collector]:
    with collector() as found:
        yield found
        traces.stop()


@pytest.fixture
def traced(received: Collector) -> Export:
    return start(received)


def start(received: Collector, **settings: object) -> Export:
    """Switch traces on. The answer switches them off and returns what arrived, by name."""
    traces.start(ProcessSettings(otlp_endpoint=received.endpoint, **settings), "test")  # type: ignore[arg-type]

    def export() -> dict[str, ReceivedSpan]:
        traces.stop()
        return {span.name: span for span in received.spans}

    return export


# FastAPI itself imports OpenTelemetry's API, which is small. The SDK and its exporters are not.
@pytest.mark.parametrize(
    ("programs", "heavy"),
    [
        ("waybill_worker.__main__, waybill_gateway.__main__, waybill_janitor.__main__, waybill_cli.main", ""),
        ("waybill_api.program", ".sdk .exporter .proto .instrumentation"),
    ],
)
def test_a_process_without_traces_imports_nothing_of_opentelemetry(programs: str, heavy: str) -> None:
    program = (
        f"import sys, {programs}\n"
        "from waybill.config import ProcessSettings\n"
        "from waybill.telemetry import spans, traces\n"
        "traces.start(ProcessSettings(), 'test')\n"
        "with spans.span('a', attributes={'b': 1}) as span, spans.about_job(job_id='1', tenant='t', kind='k'):\n"
        "    span.set({'c': 2}); span.event('d'); span.fail('E')\n"
        "assert (spans.on(), spans.carrier(), spans.current_ids()) == (False, {}, None)\n"
        "traces.stop()\n"
        f"heavy = tuple('opentelemetry' + name for name in {heavy!r}.split() or [''])\n"
        "print([name for name in sys.modules if name.startswith((*heavy, 'grpc', 'requests'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_span_is_a_part_of_the_one_around_it_and_says_which_job_it_is_about(traced: Export) -> None:
    with (
        spans.span("upload", kind="server", attributes={"size": 3}),
        spans.about_job(job_id=JOB, tenant="acme", kind="convert_pdf", attempt=2),
        spans.span("enqueue", kind="producer") as inner,
    ):
        inner.set({"waybill.lines": 12, "words": ["a", "b"]})
        inner.event("looked", {"at": "it"})
    found = traced()
    upload, enqueue = found["upload"], found["enqueue"]
    assert (upload.kind, upload.parent_id, dict(upload.attributes)) == ("server", None, {"size": 3})
    assert (enqueue.kind, enqueue.parent_id, enqueue.trace_id) == ("producer", upload.span_id, upload.trace_id)
    assert enqueue.attributes == {
        "job.id": JOB,
        "tenant.id": "acme",
        "job.kind": "convert_pdf",
        "job.attempt": 2,
        "waybill.lines": 12,
        "words": ["a", "b"],
    }
    assert enqueue.events == (("looked", {"at": "it"}),)
    assert enqueue.resource["service.name"] == "waybill-test"
    assert {"service.version", "service.instance.id"} <= enqueue.resource.keys()


def test_a_trace_goes_on_in_another_process_with_its_job_and_nothing_that_a_stranger_adds(traced: Export) -> None:
    with spans.span("here"), spans.about_job(job_id=JOB, tenant="a b,ü=", kind="k", attempt=1):
        carried = spans.carrier()
        here = spans.current_ids()
    assert here is not None
    carried["baggage"] += ",job.secret=1,evil=2"
    carried["tracestate"] = "vendor=x"
    with spans.joined(carried), spans.span("there"):
        assert spans.carrier()["tracestate"] == "vendor=x"
        assert "evil" not in spans.carrier()["baggage"]
    there = traced()["there"]
    assert (there.trace_id, there.parent_id) == here
    assert there.attributes == {"job.id": JOB, "tenant.id": "a b,ü=", "job.kind": "k", "job.attempt": 1}


@pytest.mark.parametrize("text", ["", "00-a-b-01", f"00-{'0' * 32}-{'1' * 16}-01", f"ff-{'1' * 32}-{'1' * 16}-01"])
def test_a_carrier_that_is_none_starts_a_trace(traced: Export, text: str) -> None:
    with spans.joined({"traceparent": text}), spans.span("alone"):
        pass
    assert traced()["alone"].parent_id is None


def test_an_error_is_a_code_or_a_class_and_never_a_message(traced: Export) -> None:
    with pytest.raises(NotPdf), spans.span("known"):
        raise NotPdf("invoice of Mr Secret")
    with pytest.raises(ValueError), spans.span("unknown"):
        trace.get_current_span().record_exception(ValueError("Mr Secret"))
        raise ValueError("Mr Secret")
    with pytest.raises(asyncio.CancelledError), spans.span("stopped"):
        raise asyncio.CancelledError
    found = traced()
    assert (found["known"].failed, found["known"].attributes["error.type"]) == (True, "NOT_PDF")
    assert (found["unknown"].failed, found["unknown"].attributes["error.type"]) == (True, "ValueError")
    assert not found["stopped"].failed
    assert "Secret" not in repr(found)


def test_a_span_of_what_is_over_has_its_times(traced: Export) -> None:
    begun = datetime(2026, 1, 2, tzinfo=UTC)
    with spans.span("now"):
        spans.past_span("wait", begun=begun, ended=begun + timedelta(seconds=2), error="TIMEOUT")
    found = traced()
    assert found["wait"].begun == int(begun.timestamp()) * 10**9
    assert found["wait"].ended - found["wait"].begun == 2 * 10**9
    assert (found["wait"].parent_id, found["wait"].failed) == (found["now"].span_id, True)


def test_what_handlers_record_with_opentelemetrys_own_api_is_in_the_trace(traced: Export) -> None:
    running = traces.export()
    assert running is not None
    with spans.span("ours"), spans.about_job(job_id=JOB, tenant="t", kind="k"):
        trace.get_current_span().set_attribute("theirs", 1)
        tracer = running.provider.get_tracer("handler")
        with pytest.raises(ValueError), tracer.start_as_current_span("theirs"), spans.span("inside"):
            raise ValueError("Mr Secret")
    found = traced()
    assert found["ours"].attributes == {"theirs": 1}
    assert found["theirs"].parent_id == found["ours"].span_id
    assert found["theirs"].attributes["job.id"] == JOB
    assert found["inside"].parent_id == found["theirs"].span_id
    assert "Secret" not in repr(found)


def test_only_a_part_of_the_traces_is_sampled_and_each_as_a_whole(received: Collector) -> None:
    export = start(received, trace_sample_ratio=0.25)
    for _ in range(400):
        with spans.span("outer"), spans.span("inner"):
            pass
    export()
    outer = {span.trace_id for span in received.named("outer")}
    assert {span.trace_id for span in received.named("inner")} == outer
    assert 50 < len(outer) < 150  # six standard deviations around a hundred


def test_a_run_that_fails_is_exported_whole_without_being_sampled(received: Collector) -> None:
    export = start(received, trace_sample_ratio=0)
    with spans.span("request"):
        with spans.run_span("succeeds", span_id=1), spans.span("quiet"):
            pass
        with spans.run_span("fails", span_id=2, links=[spans.Link(f"00-{'a' * 32}-{'b' * 16}-01", "before")]) as run:
            assert spans.current_ids(sampled=True) is None
            assert spans.carrier()["traceparent"].endswith("-00")
            with spans.span("call", kind="client"):
                pass
            run.fail("GW_5XX")
    found = export()
    assert set(found) == {"fails", "call"}
    assert found["call"].parent_id == found["fails"].span_id == f"{2:016x}"
    assert found["fails"].links == (("a" * 32, "b" * 16),)


def test_a_run_can_be_a_trace_of_its_own(traced: Export) -> None:
    with spans.span("around"), spans.run_span("run", span_id=7, trace_id=9):
        assert spans.current_ids() == (f"{9:032x}", f"{7:016x}")
    found = traced()
    assert (found["run"].trace_id, found["run"].parent_id) == (f"{9:032x}", None)


def test_a_handler_that_adds_without_end_makes_no_span_without_end(traced: Export) -> None:
    with spans.span("work") as span:
        mine = trace.get_current_span()
        for number in range(200):
            mine.set_attribute(f"row {number}", number)
            mine.add_event("row", {"text": "x" * 10_000})
            mine.add_link(mine.get_span_context())
        mine.set_attribute("row 5", "changed")
        span.fail("GW_5XX")
    work = traced()["work"]
    assert work.attributes["row 5"] == "changed"
    assert work.attributes["error.type"] == "GW_5XX", "how it ended always has room"
    assert (len(work.attributes), len(work.events), len(work.links)) == (129, 128, 128)
    assert len(work.events[0][1]["text"]) == 512
