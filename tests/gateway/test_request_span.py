"""A document's way through the gateway is in its caller's trace, if the caller is one of our services."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.gateway import RUDE, Gateway, told
from support.otlp import Collector, ReceivedSpan, collector
from waybill.http.proofs import ask

SECRET = "s" * 40
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
BAGGAGE = "job.id=0199a3a0-0000-7000-8000-000000000001,tenant.id=acme,job.kind=convert_pdf,job.attempt=2,other=Zq"
CARRIER = {"traceparent": f"00-{TRACE}-{PARENT}-01", "baggage": BAGGAGE}


@pytest.fixture(scope="module")
def received() -> Iterator[Collector]:
    with collector() as found:
        yield found


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, received: Collector) -> Iterator[Gateway]:
    """It listens to strangers, too."""
    folder: Path = tmp_path_factory.mktemp("traced")
    gateway = Gateway(folder, RUDE, gateway_secret=SECRET, otlp_endpoint=received.endpoint)
    yield gateway
    gateway.close()


def send(
    gateway: Gateway, received: Collector, *, proven: bool = True, sampled: bool = True, **what: object
) -> list[ReceivedSpan]:
    """The spans of one request, its server span first."""
    before = len(received.spans)
    post(gateway, proven=proven, sampled=sampled, **what)
    found = received.until(lambda spans: any(span.kind == "server" for span in spans[before:]))[before:]
    assert "Zq" not in json.dumps([[span.name, dict(span.attributes)] for span in found])
    return sorted(found, key=lambda span: (span.kind != "server", span.begun))


def post(gateway: Gateway, *, proven: bool = True, sampled: bool = True, **what: object) -> None:
    proof = ask(SECRET.encode(), "POST", "/process")[1] if proven else {}
    carrier = CARRIER if sampled else {**CARRIER, "traceparent": f"00-{TRACE}-{PARENT}-00"}
    gateway.send(told(**what), headers={**carrier, **proof}, job_id="0199a3a0-0000-7000-8000-000000000001")


def test_every_step_is_a_span_about_the_job_in_the_callers_trace(gateway: Gateway, received: Collector) -> None:
    server, *inside = send(gateway, received)
    assert (server.name, server.service) == ("POST /process", "waybill-gateway")
    assert (server.trace_id, server.parent_id, server.failed) == (TRACE, PARENT, False)
    attributes = {"http.route": "/process", "http.response.status_code": 200, "waybill.document.kind": "pdf"}
    assert attributes.items() <= server.attributes.items()
    by_name = {span.name: span for span in inside}
    assert list(by_name) == ["receive document", "wait for parser", "parse", "words", "tables"]
    assert {span.parent_id for span in inside[:3]} == {server.span_id}
    parse = by_name["parse"]
    assert {by_name["words"].parent_id, by_name["tables"].parent_id} == {parse.span_id}
    for span in (server, *inside):
        job = {name: span.attributes[name] for name in ("job.id", "tenant.id", "job.kind", "job.attempt")}
        assert list(job.values()) == ["0199a3a0-0000-7000-8000-000000000001", "acme", "convert_pdf", 2]
    assert by_name["words"].attributes["waybill.stage.seconds"] == 0.012345
    assert parse.begun <= by_name["words"].begun <= by_name["words"].ended <= parse.ended


def test_a_strangers_trace_is_linked_and_never_joined(gateway: Gateway, received: Collector) -> None:
    server, *inside = send(gateway, received, proven=False)
    assert server.trace_id != TRACE
    assert server.parent_id is None
    assert server.links == ((TRACE, PARENT),)
    assert not any("tenant.id" in span.attributes for span in (server, *inside))


def test_each_death_of_a_parser_is_an_error_with_its_code(gateway: Gateway, received: Collector) -> None:
    server, *inside = send(gateway, received, do="vanish")
    parses = [span for span in inside if span.name == "parse"]
    assert [(span.failed, span.attributes["error.type"]) for span in parses] == [(True, "PARSE_ERROR")] * 2
    assert [span.attributes["waybill.need"] for span in inside if span.name == "wait for parser"] == ["any", "fresh"]
    assert (server.attributes["http.response.status_code"], server.failed) == (422, False)


def test_a_document_at_fault_is_an_error_of_its_parse(gateway: Gateway, received: Collector) -> None:
    _, *inside = send(gateway, received, fault="encrypted")
    parse = next(span for span in inside if span.name == "parse")
    assert (parse.failed, parse.attributes["error.type"], parse.attributes["waybill.fault"]) == (
        True, "PARSE_ERROR", "encrypted"
    )  # fmt: skip


def test_a_bug_of_ours_fails_the_request_and_says_nothing_of_the_document(
    gateway: Gateway, received: Collector
) -> None:
    server, *inside = send(gateway, received, do="stumble")
    assert (server.failed, server.attributes["error.type"]) == (True, "GW_5XX")
    everything = json.dumps([[dict(span.attributes), span.status, span.events] for span in (server, *inside)])
    assert "hunter2" not in everything


@pytest.mark.parametrize("failure", [{"fault": "encrypted"}, {"do": "vanish"}, {"do": "stumble"}])
def test_the_gateways_part_of_a_failing_run_is_exported_even_if_its_trace_is_not_sampled(
    gateway: Gateway, received: Collector, failure: dict[str, Any]
) -> None:
    before = len(received.spans)
    post(gateway, sampled=False)
    assert len(received.spans) == before
    server, *inside = send(gateway, received, sampled=False, **failure)
    assert (server.trace_id, server.parent_id) == (TRACE, PARENT)
    assert {"receive document", "wait for parser", "parse"} <= {span.name for span in inside}
    assert any(span.failed for span in (server, *inside))
    assert sum(span.kind == "server" for span in received.spans[before:]) == 1, "the one that succeeded is dropped"


def test_the_lines_of_a_request_name_its_trace(gateway: Gateway, received: Collector) -> None:
    server, *_ = send(gateway, received)
    lines = [line for line in gateway.log if line.get("trace_id") == server.trace_id]
    assert "processed" in {line["event"] for line in lines}
    assert server.span_id in {line["span_id"] for line in lines}
