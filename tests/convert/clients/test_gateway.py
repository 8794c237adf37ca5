"""The way to the gateway: what it sends, and what it calls the ways in which a call can fail."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from support.gateway import RUDE, told
from support.gateway import Gateway as RunningGateway
from support.parser_pool import started
from support.sick_gateway import Answer, answering, breaking_off, sick_gateway, stalling
from support.traced import traced
from waybill.errors import Code, GatewayUnavailable
from waybill.failures import classify
from waybill.gateway_client.connections import MOST_PARAMS_CHARACTERS
from waybill.gateway_client.refusals import MOST_FINDINGS, MOST_FINDINGS_BYTES
from waybill.gateway_client.source import Source
from waybill.messages import msg
from waybill.telemetry import spans
from waybill_convert.clients.answers import ConvertedDocument, Rejected
from waybill_convert.clients.gateway import MOST_AT_HAND, Apart, Gateway
from waybill_engine.worker.process_pool import BlockingPool

DOCUMENT = b"%PDF-1.7 " + bytes(range(256)) * 2000
GOOD = json.dumps({"xml": "<a/>", "source": {"pages": [{}, {}]}, "data": {"number": "1"}}).encode()


async def pieces() -> AsyncIterator[bytes]:
    for start in range(0, len(DOCUMENT), 100_000):
        yield DOCUMENT[start : start + 100_000]


def source() -> Source:
    return Source(pieces(), len(DOCUMENT), hashlib.sha256(DOCUMENT).hexdigest())


async def never(_function: Callable[..., object], *_arguments: object) -> None:
    raise AssertionError("a small answer needs no process of its own")


async def call(answer: Answer, timeout: float = 60.0, apart: Apart = never) -> ConvertedDocument:
    async with sick_gateway(answer) as server:
        gateway = Gateway(server.url, timeout)
        try:
            return await gateway.convert(source(), mapping="some_v1", job_id="job-1", apart=apart)
        finally:
            await gateway.close()


async def failure(answer: Answer, timeout: float = 60.0) -> Any:
    with pytest.raises(Exception) as raised:
        await call(answer, timeout)
    return classify(raised.value)


async def test_a_conversion_comes_back_in_its_parts() -> None:
    conversion = await call(answering(200, GOOD))
    assert (conversion.xml, conversion.root) == (b"<a/>", "a")
    assert conversion.pages == 2
    assert json.loads(conversion.provenance) == {"source": {"pages": [{}, {}]}, "data": {"number": "1"}}


async def test_a_call_is_a_span_that_the_gateway_can_continue() -> None:
    job = {"job_id": "job-1", "tenant": "acme", "kind": "convert_pdf", "attempt": 2}
    with traced("worker") as export, spans.about_job(**job):  # type: ignore[arg-type]
        async with sick_gateway(answering(200, GOOD)) as server:
            gateway = Gateway(server.url, 60.0)
            await gateway.convert(source(), mapping="some_v1", job_id="job-1", apart=never)
            await gateway.close()
        refused = await failure(answering(503))
        worked, failed = export()
    headers = server.requests[0][0]
    assert headers["traceparent"] == f"00-{worked.trace_id}-{worked.span_id}-01"
    assert headers["baggage"] == "job.id=job-1,tenant.id=acme,job.kind=convert_pdf,job.attempt=2"
    assert (worked.name, worked.kind, worked.failed) == ("POST /process", "client", False)
    assert worked.attributes["http.response.status_code"] == 200
    assert (failed.failed, failed.attributes["error.type"]) == (True, refused.code.value)
    assert failed.attributes["http.response.status_code"] == 503


async def test_the_document_is_sent_as_it_is_with_its_mapping_and_job() -> None:
    async with sick_gateway(answering(200, GOOD)) as server:
        gateway = Gateway(server.url, 60.0)
        await gateway.convert(source(), mapping="some_v1", job_id="job-1", apart=never)
        await gateway.convert(source(), mapping="some_v1", job_id="job-2", apart=never, loss="lenient")
        await gateway.close()
    headers, body = server.requests[0]
    assert DOCUMENT in body
    assert b'name="loss"' not in body
    assert b'name="loss"\r\n\r\nlenient\r\n' in server.requests[1][1]
    assert b'name="mapping"\r\n\r\nsome_v1\r\n' in body
    assert headers["accept"] == "application/vnd.waybill.conversion+json"
    assert headers["x-job-id"] == "job-1"
    assert server.connections == 1, "connections are kept and used again"


@pytest.mark.parametrize("status", [400, 406, 415, 422])
async def test_what_is_the_documents_fault_is_never_tried_again(status: int) -> None:
    found = await failure(answering(status, b'{"detail": "No NPWP on page 1."}'))
    assert found.code is Code.GW_4XX
    assert not found.retryable
    assert not found.of_dependency
    assert found.message == "No NPWP on page 1."


async def test_the_gateways_key_and_parameters_come_along() -> None:
    problem = {"detail": "No mapping 'x'.", "key": "gateway.mapping_unknown", "params": {"name": "x"}}
    found = await failure(answering(400, json.dumps(problem).encode()))
    assert (found.message, found.key, found.params) == (problem["detail"], problem["key"], problem["params"])
    assert found.detail == {"status": 400, "key": "gateway.mapping_unknown", "params": {"name": "x"}}
    large = {"detail": "Over 50 MB.", "key": "gateway.too_large", "params": {"megabytes": 50}}
    found = await failure(answering(413, json.dumps(large).encode()))
    assert (found.code, found.message, found.key) == (Code.TOO_LARGE, "Over 50 MB.", "gateway.too_large")


@pytest.mark.parametrize(
    "problem",
    [
        {"detail": "Wrong.", "key": 7, "params": {}},
        {"detail": "Wrong.", "key": "a.b", "params": []},
        {"detail": "Wrong.", "key": "a.b", "params": {"x": "x" * MOST_PARAMS_CHARACTERS}},
        {"detail": "Wrong."},
    ],
)
async def test_a_key_that_cannot_be_kept_leaves_the_sentence(problem: dict[str, Any]) -> None:
    found = await failure(answering(422, json.dumps(problem).encode()))
    assert (found.message, found.key, found.params) == ("Wrong.", None, {})


async def test_an_answer_without_a_sentence_says_what_its_code_means() -> None:
    found = await failure(answering(400, b"<html>a proxy</html>"))
    assert (found.message, found.key) == (str(msg("errors.GW_4XX")), "errors.GW_4XX")


async def test_findings_are_kept_and_bounded() -> None:
    findings = [{"code": "check_failed", "message": f"line {number}"} for number in range(500)]
    problem = {"detail": "Wrong.", "fault": "check_failed", "findings": findings, "partial": {"data": {"a": "1"}}}
    with pytest.raises(Rejected) as raised:
        await call(answering(422, json.dumps(problem).encode()))
    assert raised.value.detail is not None
    assert raised.value.detail["findings"] == findings[:MOST_FINDINGS]
    assert raised.value.detail["findings_total"] == 500
    assert json.loads(raised.value.partial or b"") == {"data": {"a": "1"}}


async def test_too_large_has_a_code_of_its_own() -> None:
    found = await failure(answering(413))
    assert found.code is Code.TOO_LARGE
    assert not found.retryable


@pytest.mark.parametrize("status", [500, 502, 504, 507])
async def test_the_gateways_own_trouble_counts_against_it(status: int) -> None:
    found = await failure(answering(status, b"<html>sorry</html>"))
    assert (found.code, found.retryable, found.charged, found.of_dependency) == (Code.GW_5XX, True, True, True)
    assert (found.dependency, found.away) == ("gateway", False), "it may be this document's doing"


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_gateway_is_waited_for_and_nobody_is_charged(status: int) -> None:
    found = await failure(answering(status, headers={"Retry-After": "7"}))
    assert (found.retryable, found.charged, found.of_dependency) == (True, False, False)
    assert (found.retry_after, found.dependency, found.blames) == (7, "gateway", True)


async def test_a_parser_that_is_killed_from_outside_again_and_again_charges_nobody(tmp_path: Path) -> None:
    gateway = RunningGateway(tmp_path / "gateway", RUDE)
    client = Gateway(gateway.url, 60.0)
    (run,) = gateway.spool.glob("run-*")
    document = told(do="sleep", started=str(run / "started"))

    async def content() -> AsyncIterator[bytes]:
        yield document

    try:
        sent = Source(content(), len(document), hashlib.sha256(document).hexdigest())
        call = asyncio.create_task(client.convert(sent, mapping="pt_simon_invoice_v1", job_id="job-1", apart=never))
        first = await started(run / "started")
        os.kill(first, signal.SIGKILL)
        os.kill(await started(run / "started", after=first), signal.SIGKILL)
        with pytest.raises(GatewayUnavailable) as raised:
            await call
    finally:
        await client.close()
        gateway.close()
    found = classify(raised.value)
    assert (found.retryable, found.charged) == (True, False)
    assert found.retry_after is not None
    assert found.retry_after >= 5


async def test_a_busy_gateway_that_does_not_say_how_long() -> None:
    assert (await failure(answering(503, headers={"Retry-After": "Wed, 21 Oct"}))).retry_after == 5
    assert (await failure(answering(503))).retry_after == 5


async def test_silence_is_a_time_out() -> None:
    found = await failure(stalling, timeout=0.3)
    assert (found.code, found.of_dependency) == (Code.GW_TIMEOUT, True)


async def test_a_connection_that_breaks_is_the_gateways_trouble() -> None:
    found = await failure(breaking_off)
    assert (found.code, found.of_dependency, found.away) == (Code.GW_5XX, True, False)


async def test_nobody_there() -> None:
    async with sick_gateway(stalling) as server:
        pass  # it was there a moment ago
    gateway = Gateway(server.url, 60.0)
    with pytest.raises(Exception) as raised:
        await gateway.convert(source(), mapping="some_v1", job_id="job-1", apart=never)
    await gateway.close()
    found = classify(raised.value)
    assert (found.code, found.dependency, found.of_dependency, found.away) == (Code.GW_5XX, "gateway", True, True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"xml": ""}',
        b'{"xml": 7}',
        b"\xff\xfe",
        b'{"xml": "<a>"}',
        b'{"xml": "<a>\\ud800</a>"}',
        b"[" * 100_000,
    ],
)
async def test_an_answer_that_is_no_conversion_is_the_gateways_trouble(body: bytes) -> None:
    assert (await failure(answering(200, body))).code is Code.GW_5XX


async def test_half_a_character_costs_only_itself() -> None:
    conversion = await call(answering(200, b'{"xml": "<a/>", "data": {"name": "half \\ud800 and \\u00e9"}}'))
    assert json.loads(conversion.provenance) == {"data": {"name": "half ? and \u00e9"}}
    found = await failure(answering(422, b'{"detail": "half \\ud800", "partial": {"data": "\\ud800"}}'))
    assert found.code is Code.GW_4XX


async def test_long_findings_do_not_swell_the_jobs_row() -> None:
    findings = [{"message": "x" * (MOST_FINDINGS_BYTES // 4)} for _ in range(10)]
    with pytest.raises(Rejected) as raised:
        await call(answering(422, json.dumps({"findings": findings}).encode()), apart=Beside())
    assert raised.value.detail is not None
    assert raised.value.detail["findings"] == findings[:3]
    assert raised.value.detail["findings_total"] == 10


class Beside:
    """A pool of processes, and how often the loop had a turn while it was at work."""

    def __init__(self) -> None:
        self.pool = BlockingPool(1)
        self.turns: list[int] = []

    async def __call__(self, function: Callable[..., object], *arguments: object) -> object:
        running = asyncio.create_task(self.pool.run(function, *arguments))
        turns = 0
        while not running.done():
            await asyncio.wait([running], timeout=0.001)
            turns += 1
        self.turns.append(turns)
        return await running


async def test_a_large_answer_is_understood_beside_the_loop() -> None:
    row = {"raw": "1.234,00", "page": 7, "box": [1, 2, 3, 4], "rule": "lines.amount"}
    rows = [row] * (MOST_AT_HAND // len(json.dumps(row)) + 1)
    beside = Beside()
    conversion = await call(answering(200, json.dumps({"xml": "<a/>", "lines": rows}).encode()), apart=beside)
    assert json.loads(conversion.provenance) == {"lines": rows}
    problem = {"detail": "Wrong.", "findings": [{"message": "line 1"}], "partial": {"lines": rows}}
    with pytest.raises(Rejected) as raised:
        await call(answering(422, json.dumps(problem).encode()), apart=beside)
    assert raised.value.message == "Wrong."
    assert json.loads(raised.value.partial or b"") == {"lines": rows}
    assert len(beside.turns) == 2
    assert min(beside.turns) > 1
