"""Requests are spans, and what a caller sends along decides nothing about them."""

from __future__ import annotations

import pytest

from support.api_fixtures import Serve
from support.api_server import pdf
from support.otlp import Collector, ReceivedSpan, traced
from waybill.telemetry import traces

CALLER = {
    "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
    "tracestate": "vendor=1",
    "baggage": "job.id=7,user=Mr Secret",
    "User-Agent": "Mr Secret's browser",
}


def stopped(collector: Collector) -> list[ReceivedSpan]:
    traces.stop()
    return sorted(collector.spans, key=lambda span: span.begun)


async def test_each_file_of_an_upload_has_a_span_that_carries_its_jobs_id(serve: Serve) -> None:
    with traced("api") as collector:
        async with serve() as api:
            files = [("file", (name, pdf(), "application/pdf")) for name in ("a.pdf", "b.pdf", "c.txt")]
            answer = await api.client().post("/api/uploads?secret=Mr+Secret", files=files, headers=CALLER)
            (await api.client().get("/livez")).raise_for_status()
            (await api.client().get("/api/healthz")).raise_for_status()
        found = stopped(collector)
    (server,) = (span for span in found if span.kind == "server")
    assert (server.name, server.parent_id, server.service) == ("POST /api/uploads", None, "waybill-api")
    assert server.attributes == {
        "http.request.method": "POST",
        "http.response.status_code": 207,
        "http.route": "/api/uploads",
        "network.protocol.version": "1.1",
        "url.scheme": "http",
    }
    assert server.links == (("a" * 32, "b" * 16),), "a stranger's trace is linked, not joined"
    assert {span.trace_id for span in found} == {server.trace_id}
    for each in answer.json()["files"][:2]:
        job_id = each["job"]["id"]
        mine = {span.name: span for span in found if span.attributes.get("job.id") == job_id}
        assert {"receive document", "upload document", "enqueue convert_pdf"} <= set(mine)
        assert {mine[name].parent_id for name in ("receive document", "upload document")} == {server.span_id}
        assert mine["enqueue convert_pdf"].parent_id == mine["upload document"].span_id
        assert {span.attributes["tenant.id"] for span in mine.values()} == {"public"}
    refused = [span for span in found if span.name == "receive document" and span.failed]
    assert [span.attributes["error.type"] for span in refused] == ["NOT_PDF"]
    assert "Secret" not in repr(found)


async def test_a_stranger_cannot_have_an_unsampled_request_recorded(serve: Serve) -> None:
    with traced("api", trace_sample_ratio=0) as collector:
        async with serve() as api:
            await api.client().get("/api/mappings", headers=CALLER)
        assert stopped(collector) == []


@pytest.mark.parametrize("trusted", [False, True])
async def test_no_header_keeps_a_request_from_being_answered(serve: Serve, trusted: bool) -> None:
    """The library that makes the spans reads some headers, and takes those that are not UTF-8 for Python's escapes."""
    no_text = b"\xff\\N"
    with traced("api", trace_trust_callers=trusted) as collector:
        async with serve() as api:
            for name in (b"user-agent", b"traceparent", b"tracestate"):
                headers = [(b"traceparent", CALLER["traceparent"].encode())] if name == b"tracestate" else []
                answer = await api.client().get("/api/mappings", headers=[*headers, (name, no_text)])
                assert answer.status_code == 200, name
        assert len(stopped(collector)) == 3


async def test_a_trusted_callers_trace_goes_on_without_its_baggage(serve: Serve) -> None:
    with traced("api", trace_trust_callers=True) as collector:
        async with serve() as api:
            await api.client().get("/api/mappings", headers=CALLER)
        (server,) = stopped(collector)
    assert (server.trace_id, server.parent_id, server.links) == ("a" * 32, "b" * 16, ())
    assert "Secret" not in repr(server)


async def test_a_request_that_fails_shows_its_class_and_no_message(serve: Serve) -> None:
    with traced("api") as collector:
        async with serve() as api:

            def broken() -> None:
                raise RuntimeError("Mr Secret")

            api.context.database.hot = broken  # type: ignore[method-assign,assignment]
            answer = await (await api.browser()).get("/api/jobs")
        assert answer.status_code == 500
        (server,) = stopped(collector)
    assert (server.failed, server.attributes["http.response.status_code"]) == (True, 500)
    assert "Secret" not in repr(server)
