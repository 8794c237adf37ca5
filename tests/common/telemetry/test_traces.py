"""A collector may be slow, deaf or absent: work goes on as if there were none, and the log says so once."""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from pydantic import ValidationError

from support.otlp import Collector, collector
from support.patience import PATIENCE
from waybill.config import ProcessSettings
from waybill.ids import new_id
from waybill.telemetry import span_export, spans, traces
from waybill.telemetry.span_export import RatioSampler
from waybill.telemetry.span_sender import SpanSender


@pytest.fixture(autouse=True)
def _off_again() -> Iterator[None]:
    yield
    traces.stop()


def start(endpoint: str, **settings: Any) -> None:
    traces.start(ProcessSettings(otlp_endpoint=endpoint, **settings), "test")


def make(number: int) -> None:
    for _ in range(number):
        with spans.span("work"):
            pass


@contextmanager
def grpc_collector() -> Iterator[tuple[str, Collector, dict[str, str]]]:
    received, told = Collector(), dict[str, str]()

    class Service(TraceServiceServicer):
        def Export(  # noqa: N802 - the service's name for it
            self, request: ExportTraceServiceRequest, context: grpc.ServicerContext
        ) -> ExportTraceServiceResponse:
            told.update({name: str(value) for name, value in context.invocation_metadata()})
            received.receive(request.SerializeToString(), {})
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(1))
    add_TraceServiceServicer_to_server(Service(), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}", received, told
    finally:
        server.stop(None).wait()


def test_spans_arrive_by_http_with_the_headers_that_were_asked_for() -> None:
    with collector() as received:
        start(received.endpoint, otlp_headers="api-key=a%20b")
        make(3)
        traces.stop()
        assert len(received.named("work")) == 3
        assert received.headers[0]["api-key"] == "a b"


def test_spans_arrive_by_grpc_too() -> None:
    with grpc_collector() as (endpoint, received, told):
        start(endpoint, otlp_protocol="grpc", otlp_headers="api-key=x")
        make(3)
        traces.stop()
        assert len(received.named("work")) == 3
        assert told["api-key"] == "x"


@contextmanager
def rude_server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that does this to everybody who connects, and then hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, contextlib.suppress(OSError):
                        answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)


def resets(connection: socket.socket) -> None:
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def talks_nonsense(connection: socket.socket) -> None:
    while connection.recv(65536):
        connection.sendall(b"\xff\x00nonsense" * 1000)


def hangs_up(connection: socket.socket) -> None:
    """It sends half a frame of settings, as a gRPC server begins, and leaves."""
    connection.recv(65536)
    connection.sendall(b"\x00\x00\x12\x04\x00")


@contextmanager
def absent() -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def deaf() -> Iterator[str]:
    """It accepts, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize(
    "collector_that",
    [
        absent,
        deaf,
        functools.partial(rude_server, resets),
        functools.partial(rude_server, talks_nonsense),
        functools.partial(rude_server, hangs_up),
    ],
    ids=["absent", "deaf", "resets", "talks nonsense", "hangs up"],
)
def test_nobody_waits_for_a_collector_and_the_log_says_it_once(
    collector_that: Callable[[], AbstractContextManager[str]],
    protocol: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(span_export, "_REQUEST", 0.2)
    caplog.set_level(logging.DEBUG)
    with collector_that() as endpoint, structlog.testing.capture_logs() as lines:
        start(endpoint, otlp_protocol=protocol)
        running = traces.export()
        assert running is not None
        begun = time.perf_counter()
        make(20_000)
        each = (time.perf_counter() - begun) / 20_000
        wait_until(lambda: running.lost)
        make(20_000)
        waiting = running.waiting
        before = time.perf_counter()
        traces.stop()
        stopping = time.perf_counter() - before
    assert each < 0.001, "seconds for one span; it takes some ten microseconds"
    assert waiting <= 8192
    assert stopping < traces.STOP_WITHIN
    assert [line["event"] for line in lines] == ["traces_lost"]
    assert caplog.records == [], "the libraries themselves say nothing"


def test_a_grpc_collector_that_misbehaves_leaves_no_connections_and_no_threads_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(span_export, "_REQUEST", 0.2)
    descriptors: list[int] = []
    threads: list[int] = []
    for turn in range(5):
        with rude_server(talks_nonsense) as endpoint:
            start(endpoint, otlp_protocol="grpc")
            make(100)
            wait_until(_lost)
            traces.stop()
        if turn > 1:  # gRPC's own threads close connections a little later
            wait_until(lambda: _descriptors() <= max(descriptors))
        descriptors.append(_descriptors())
        threads.append(sum(thread.name.startswith(("Otel", "waybill")) for thread in threading.enumerate()))
    assert threads[-1] <= threads[0] + 1


def _descriptors() -> int:
    gc.collect()
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _lost() -> bool:
    running = traces.export()
    return running is not None and running.lost


def wait_until(condition: Any) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_the_last_spans_have_a_few_seconds_and_no_more() -> None:
    with collector() as received:
        received.answer.clear()  # it hears everything and does not answer
        start(received.endpoint)
        make(1)
        before = time.perf_counter()
        traces.stop(0.3)
        assert time.perf_counter() - before < 3
        assert not spans.on()


class Moody(SpanExporter):
    def __init__(self) -> None:
        self.well = True
        self.asked = 0

    def export(self, spans: Any) -> SpanExportResult:
        self.asked += 1
        if not self.well:
            raise RuntimeError("no luck")
        return SpanExportResult.SUCCESS


def test_a_collector_that_is_away_is_asked_now_and_then_and_its_return_is_told_once() -> None:
    exporter, now = Moody(), [0.0]
    sender = SpanSender(exporter, "http://there", clock=lambda: now[0])
    batch = [ReadableSpan("a"), ReadableSpan("b")]
    with structlog.testing.capture_logs() as lines:
        exporter.well = False
        for _ in range(600):
            now[0] += 0.1
            sender.export(batch)
        assert exporter.asked < 10, "a minute of failures is a handful of tries"
        exporter.well = True
        now[0] += 60
        assert sender.export(batch) is SpanExportResult.SUCCESS
        sender.export(batch)
    assert [line["event"] for line in lines] == ["traces_lost", "traces_arrive_again"]
    assert lines[1]["lost"] == 1200


def test_ids_of_jobs_are_sampled_like_any_other() -> None:
    for ratio in (0, 0.01, 0.5, 1):
        sampler = RatioSampler(ratio)
        found = sum(sampler.is_sampled(new_id().int) for _ in range(20_000))
        assert abs(found - 20_000 * ratio) < 400


@pytest.mark.parametrize(
    "wrong",
    [
        {"otlp_endpoint": "localhost:4318"},
        {"otlp_endpoint": "http://collector:99999"},
        {"otlp_endpoint": "http://collector:port"},
        {"otlp_endpoint": "http://collector :4318"},
        {"otlp_endpoint": "http://collector:4318?key=1"},
        {"otlp_headers": "secret"},
        {"otlp_headers": "api key=secret"},
        {"otlp_headers": "api-key=secret%0A"},
        {"otlp_headers": "api-key=secret%C3%A9"},
        {"trace_sample_ratio": 1.1},
        {"trace_url_template": "http://jaeger/trace/"},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ProcessSettings(**wrong)


def test_the_standard_names_of_the_settings_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    settings = ProcessSettings()
    assert settings.otlp_traces_url() == "http://collector:4318/v1/traces"
    assert (settings.otlp_protocol, settings.trace_sample_ratio) == ("http", 0.5)
