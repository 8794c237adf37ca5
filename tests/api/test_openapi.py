"""The OpenAPI document says what the API does: whatever is sent, no answer is a surprise."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from support.api_fixtures import Serve
from support.api_server import Converter, uploaded
from support.gateway import Gateway
from support.reviewed_invoices import end, good

CHECKS: Any = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = int(os.environ.get("WAYBILL_TEST_EXAMPLES", "8"))


@pytest.mark.timeout(300)
async def test_no_answer_is_a_5xx_or_undocumented(serve: Serve, converter: Converter, gateway: Gateway) -> None:
    limits = {"gateway_url": gateway.url, "api_key_uploads_per_minute": 100_000, "api_upload_timeout": 5}
    async with serve(**limits) as api:
        key = await api.key()
        client = api.client(key)
        reviewed = await uploaded(client, good().pdf)
        await end(converter, good())
        jobs = [reviewed, *[await uploaded(client) for _ in range(3)]]
        for lease in await converter.take(2):
            await converter.finish(lease)
        await asyncio.to_thread(_explore, api.url, key, jobs)


def _explore(url: str, key: str, jobs: list[str]) -> None:
    session = requests.Session()
    session.trust_env = False
    described: Any = schemathesis.openapi.from_url(f"{url}/api/openapi.json")
    for result in described.get_all_operations():
        operation = result.ok()
        if operation.path == "/api/stream":
            continue  # it has no end; test_stream listens to it
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            with contextlib.suppress(Unsatisfiable):  # a route without parameters cannot be given wrong ones
                _try(operation, mode, session, key, jobs)


def _try(operation: Any, mode: GenerationMode, session: requests.Session, key: str, jobs: list[str]) -> None:
    quiet = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @quiet
    @given(case=operation.as_strategy(generation_mode=mode), job=st.sampled_from([None, *jobs]), known=st.booleans())
    def explore(case: Any, job: str | None, known: bool) -> None:
        if job is not None and "job_id" in (case.path_parameters or {}):
            case.path_parameters["job_id"] = job
        headers = {"Authorization": f"Bearer {key}"} if known else {}
        answer = case.call(session=session, headers=headers, timeout=30)
        case.validate_response(answer, checks=CHECKS)

    explore()


async def test_the_document_shows_examples_and_every_route(serve: Serve) -> None:
    async with serve() as api:
        answer: httpx.Response = await api.client().get("/api/openapi.json")
        assert answer.status_code == 200
        document = answer.json()
    assert document["components"]["schemas"]["JobSchema"]["example"]["links"]["download"].endswith("/download")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (method, path)
            assert "400" in operation["responses"], (method, path)
    assert {"/api/upload", "/api/uploads", "/api/jobs", "/api/stream", "/session"} <= document["paths"].keys()
