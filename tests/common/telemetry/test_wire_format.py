"""The quick encoder writes what OpenTelemetry's own writes."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from waybill.telemetry.wire_format import encoded

RESOURCES = [Resource({"service.name": "a", "process.pid": 7}), Resource({"service.name": "ü"}, "http://schema")]
SCOPES = [InstrumentationScope("waybill"), InstrumentationScope("fastapi", "1.0", "http://scope"), None]
HERE = SpanContext(2**127 + 5, 2**63 + 3, is_remote=False, trace_flags=TraceFlags(3))
REMOTE = SpanContext(HERE.trace_id, 77, is_remote=True, trace_flags=TraceFlags(1))


def span(**facts: Any) -> ReadableSpan:
    given: dict[str, Any] = {
        "name": "process",
        "context": HERE,
        "resource": RESOURCES[0],
        "instrumentation_scope": SCOPES[0],
        "start_time": 1_800_000_000_000_000_000,
        "end_time": 1_800_000_000_123_456_789,
    }
    return ReadableSpan(**given | facts)


SPANS = {
    "plain": [span()],
    "kinds": [span(kind=kind) for kind in SpanKind],
    "parents": [span(parent=REMOTE), span(parent=HERE)],
    "attributes": [
        span(attributes={"text": "ü" * 200, "empty": "", "one": 1, "true": True, "false": False, "many": 2**40}),
        span(attributes={"one": True, "true": 1, "negative": -5, "zero": 0, "half": 0.5, "list": ["a", "b"]}),
    ],
    "errors": [span(status=Status(StatusCode.ERROR, "GW_5XX")), span(status=Status(StatusCode.OK))],
    "events": [span(events=[Event("looked", {"at": "it"}, 5)])],
    "links": [span(links=[trace.Link(REMOTE, {"waybill.link": "run before"})])],
    "state": [span(context=SpanContext(1, 2, False, TraceFlags(1), TraceState([("v", "1")])))],
    "long": [span(name="x" * 1000, attributes={"y" * 300: "z" * 70_000})],
    "several": [span(resource=one, instrumentation_scope=two) for one in RESOURCES for two in SCOPES for _ in range(2)],
}


@pytest.mark.parametrize("spans", SPANS.values(), ids=SPANS)
def test_it_writes_what_the_other_writes(spans: list[ReadableSpan]) -> None:
    assert parts(ExportTraceServiceRequest.FromString(encoded(spans))) == parts(encode_spans(spans))


def test_a_span_that_cannot_be_written_costs_no_other() -> None:
    no_text: Any = 7
    wrong = [
        span(name="\ud800", events=[Event("looked", {}, 5)]),
        span(events=[Event("\ud800", {}, 5)]),
        span(attributes={no_text: "x"}),
        span(name=no_text),
        span(start_time=-1),
    ]
    fine = [span(name="before"), span(name="after")]
    found = parts(ExportTraceServiceRequest.FromString(encoded([fine[0], *wrong, fine[1]])))
    assert found == parts(encode_spans(fine))


def parts(request: Any) -> list[tuple[Any, ...]]:
    """Every span with what it belongs to: how they are grouped does not matter."""
    return sorted(
        (
            str(group.resource),
            group.schema_url,
            str(scope.scope),
            scope.schema_url,
            each.SerializeToString(deterministic=True),
        )
        for group in request.resource_spans
        for scope in group.scope_spans
        for each in scope.spans
    )
