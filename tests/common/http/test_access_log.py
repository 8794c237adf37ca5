"""Each request leaves one line: where it went and how it ended, and nothing that a visitor wrote."""

from __future__ import annotations

import json
import uuid
from typing import Any

import httpx
import pytest
import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from support.log_lines import configured_log
from waybill.http import AccessLog
from waybill.http.access_log import REFUSALS_PER_SECOND

log = structlog.get_logger()
JOB = uuid.uuid4()


async def answer(request: Request) -> Response:
    log.info("inside")
    if "refuse" in request.query_params:
        return Response(status_code=401)
    if "fail" in request.query_params:
        raise RuntimeError("it fails")
    return Response("found", 202)


APP = Starlette(routes=[Route("/jobs/{job_id}", answer), Route("/plain", answer), Route("/livez", answer)])


async def ask(*requests: tuple[str, str], capsys: pytest.CaptureFixture[str], **options: Any) -> list[dict[str, Any]]:
    app = AccessLog(APP, quiet={"/livez"}, **options)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    with configured_log("api"):
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
            ids = [(await client.request(method, path)).headers["x-request-id"] for method, path in requests]
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {line["request_id"] for line in lines} <= set(ids), "every line names its request"
    assert len(set(ids)) == len(requests)
    return [line for line in lines if line["event"] == "request"]


async def test_a_line_says_where_a_request_went_and_how_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    by_job, plain = await ask(("GET", f"/jobs/{JOB}?key=ZqSecret"), ("GET", "/plain"), capsys=capsys)
    assert (by_job["method"], by_job["route"], by_job["status"]) == ("GET", "/jobs/{job_id}", 202)
    assert by_job["job_id"] == str(JOB)
    assert 0 <= by_job["seconds"] < 60
    assert (plain["route"], plain["status"], plain.get("job_id")) == ("/plain", 202, None)


async def test_no_line_has_anything_that_a_visitor_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    requests = [("GET", "/ZqPath"), ("GET", "/jobs/ZqJob"), ("GET", "/plain?ZqQuery"), ("ZQMETHOD", "/plain")]
    lines = await ask(*requests, capsys=capsys)
    assert [line["status"] for line in lines] == [404, 202, 202, 405]
    assert "zq" not in json.dumps(lines).lower()


async def test_a_flood_of_refusals_does_not_flood_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    flood = [("GET", "/plain?refuse")] * (4 * REFUSALS_PER_SECOND)
    lines = await ask(*flood, ("GET", "/plain"), capsys=capsys)
    refused = [line for line in lines if line["status"] == 401]
    assert len(refused) + sum(line.get("not_logged", 0) for line in refused) <= len(flood)
    assert REFUSALS_PER_SECOND <= len(refused) < len(flood), "one second's, and those of the seconds after it"
    assert lines[-1]["status"] == 202, "everything else is logged"


async def test_a_request_that_fails_has_its_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = await ask(("GET", "/plain?fail"), capsys=capsys)
    assert (line["route"], line["status"]) == ("/plain", 500)


async def test_probes_and_a_log_that_is_switched_off_leave_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert await ask(("GET", "/livez"), capsys=capsys) == []
    assert await ask(("GET", "/plain"), capsys=capsys, written=False) == []
