"""A collector for tests: it takes spans by OTLP over HTTP, as a real one does, and answers questions about them."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

from waybill.config import ProcessSettings
from waybill.telemetry import traces


@dataclass(frozen=True)
class ReceivedSpan:
    name: str
    service: str
    trace_id: str
    span_id: str
    parent_id: str | None
    kind: str
    """internal, server, client, producer or consumer."""
    begun: int
    ended: int
    attributes: Mapping[str, Any]
    links: tuple[tuple[str, str], ...]
    """Trace and span of each."""
    events: tuple[tuple[str, Mapping[str, Any]], ...]
    failed: bool
    status: str
    resource: Mapping[str, Any] = field(default_factory=dict)


class Collector:
    """What was received so far. Requests can be held back (`answer`), or refused (`status`)."""

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._spans: list[ReceivedSpan] = []
        self.answer = threading.Event()
        self.answer.set()
        self.status = 200
        self.requests = 0
        self.headers: list[Mapping[str, str]] = []
        self.endpoint = ""

    @property
    def spans(self) -> list[ReceivedSpan]:
        with self._arrived:
            return list(self._spans)

    def of_job(self, job_id: object) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.attributes.get("job.id") == str(job_id)]

    def named(self, name: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.name == name]

    def until(self, enough: Callable[[list[ReceivedSpan]], object], timeout: float = 60.0) -> list[ReceivedSpan]:
        """Wait until what was received is enough, and return it."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: enough(self._spans), timeout):
                names = [f"{span.service}: {span.name}" for span in self._spans]
                raise AssertionError(f"not enough spans: {names}")
            return list(self._spans)

    def receive(self, body: bytes, headers: Mapping[str, str]) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._arrived:
            self.requests += 1
            self.headers.append(headers)
            self._spans += read(request)
            self._arrived.notify_all()


def read(request: ExportTraceServiceRequest) -> Iterator[ReceivedSpan]:
    for group in request.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                yield ReceivedSpan(
                    span.name,
                    str(resource["service.name"]),
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex() or None,
                    WireSpan.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    _attributes(span.attributes),
                    tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                    tuple((event.name, _attributes(event.attributes)) for event in span.events),
                    failed=span.status.code == span.status.STATUS_CODE_ERROR,
                    status=span.status.message,
                    resource=resource,
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair) for pair in pairs}


def _value(pair: KeyValue) -> Any:
    value: AnyValue = pair.value
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [getattr(each, each.WhichOneof("value")) for each in value.array_value.values]
    return getattr(value, kind) if kind else None


@contextmanager
def traced(service: str = "test", **settings: object) -> Iterator[Collector]:
    """Switches traces on in the test's own process. `traces.stop()` exports the last spans."""
    with collector() as received:
        traces.start(ProcessSettings(otlp_endpoint=received.endpoint, **settings), service)  # type: ignore[arg-type]
        try:
            yield received
        finally:
            traces.stop()


@contextmanager
def collector() -> Iterator[Collector]:
    """A collector on a free port of loopback. Its `endpoint` is what `WAYBILL_OTLP_ENDPOINT` needs."""
    received = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.answer.wait()
            if received.status == 200:
                packed = self.headers.get("Content-Encoding") == "gzip"
                received.receive(
                    gzip.decompress(body) if packed else body, {k.lower(): v for k, v in self.headers.items()}
                )
            else:
                received.requests += 1
            self.send_response(received.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    received.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        received.answer.set()
        server.shutdown()
        server.server_close()
        thread.join()
