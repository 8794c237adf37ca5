"""The OpenAPI document says what the API does: whatever is sent, no answer is a surprise."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import os
import uuid
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
from support.api_server import ALL, Api, Converter, uploaded
from support.batch_desk import made, notes
from support.gateway import Gateway
from support.log_lines import configured_log
from support.reviewed_invoices import end, good
from waybill.db import Database

CHECKS: Any = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
CHECKS_OF_HEAD: Any = [not_a_server_error, status_code_conformance, response_headers_conformance]
EXAMPLES = int(os.environ.get("WAYBILL_TEST_EXAMPLES", "6"))
FULL_SIZE = 200


async def test_the_document_has_a_name_in_the_access_log(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    with configured_log("api"):
        assert (await api.client().get("/api/openapi.json")).status_code == 200
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["route"] for line in lines if line["event"] == "request"] == ["/api/openapi.json"]


@pytest.mark.timeout(300)
async def test_no_answer_is_a_5xx_or_undocumented(serve: Serve, converter: Converter, gateway: Gateway) -> None:
    await _explore_all(serve, converter, gateway, EXAMPLES)


@pytest.mark.heavy
@pytest.mark.timeout(3600)
async def test_no_answer_is_a_5xx_or_undocumented_at_full_size(
    serve: Serve, converter: Converter, gateway: Gateway
) -> None:
    await _explore_all(serve, converter, gateway, FULL_SIZE)


async def _explore_all(serve: Serve, converter: Converter, gateway: Gateway, examples: int) -> None:
    limits = {"gateway_url": gateway.url, "api_key_uploads_per_minute": 100_000, "api_upload_timeout": 5}
    async with serve(**limits) as api:
        key = await api.key("acme", *ALL, "mappings:read", "mappings:write")
        client = api.client(key)
        reviewed = await uploaded(client, good().pdf)
        await end(converter, good())
        jobs = [reviewed, *[await uploaded(client) for _ in range(3)]]
        for lease in await converter.take(2):
            await converter.finish(lease)
        batches = await _batches(client, api.context.database)
        document = _with_heads((await client.get("/api/openapi.json")).json())
        await asyncio.to_thread(_explore, api.url, document, key, {"job_id": jobs, "batch_id": batches}, examples)


async def _batches(client: httpx.AsyncClient, database: Database) -> list[str]:
    """A batch that waits, and one that is complete with results that storage lacks."""
    waiting, complete = [await made(client, notes("a.txt")) for _ in range(2)]
    async with database.hot() as connection:
        await connection.execute(
            "INSERT INTO batch_files (batch_id, number, owner, doc_id, path, type, bytes, sha256, status, result_key,"
            " result_at, result_bytes) SELECT id, 0, owner, 'known', 'a.txt', 'text', 1, 'ab', 'complete', 'no/such',"
            " 0, 1 FROM batches WHERE id = $1",
            uuid.UUID(complete),
        )
        await connection.execute(
            "UPDATE batches SET status = 'complete', counts = '{\"files\": 1, \"complete\": 1}', summary = '{}',"
            " finished_at = now() WHERE id = $1",
            uuid.UUID(complete),
        )
    return [waiting, complete]


def _with_heads(document: dict[str, Any]) -> dict[str, Any]:
    """The document, with a HEAD for each GET, whose answers have the same headers and no content."""
    for operations in document["paths"].values():
        if "get" in operations:
            head = copy.deepcopy(operations["get"])
            head["operationId"] = f"head_{head['operationId']}"
            for response in head["responses"].values():
                response.pop("content", None)
            operations["head"] = head
    return document


def _explore(url: str, document: dict[str, Any], key: str, known_ids: dict[str, list[str]], examples: int) -> None:
    session = _Session()
    session.trust_env = False
    described: Any = schemathesis.openapi.from_dict(document)
    for result in described.get_all_operations():
        operation = result.ok()
        is_head = operation.method.lower() == "head"  # its parameters are those of GET, which are tried more often
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)[: 1 if is_head else 2]:
            with contextlib.suppress(Unsatisfiable):  # a route without parameters cannot be given wrong ones
                _try(operation, mode, url, session, key, known_ids, max(1, examples // 3) if is_head else examples)


class _Session(requests.Session):
    """Reads a live stream up to its first event, because it has no end."""

    def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
        if method != "GET" or "/stream" not in str(url):
            return super().request(method, url, *args, **kwargs)
        with super().request(method, url, *args, **{**kwargs, "stream": True}) as answer:
            read = b""
            for piece in answer.iter_content(None):
                read += piece
                if answer.status_code != requests.codes.ok or b"event: change" in read:
                    break
            answer._content = read
            return answer


def _try(
    operation: Any,
    mode: GenerationMode,
    url: str,
    session: requests.Session,
    key: str,
    known_ids: dict[str, list[str]],
    examples: int,
) -> None:
    quiet = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @quiet
    @given(case=operation.as_strategy(generation_mode=mode), place=st.integers(-1, 3), known=st.booleans())
    def explore(case: Any, place: int, known: bool) -> None:
        for name, ids in known_ids.items() if place >= 0 else ():
            if name in (case.path_parameters or {}):
                case.path_parameters[name] = ids[place % len(ids)]
                if "doc_id" in case.path_parameters:
                    case.path_parameters["doc_id"] = "known"
        headers = {"Authorization": f"Bearer {key}"} if known else {}
        answer = case.call(base_url=url, session=session, headers=headers, timeout=30)
        checks = CHECKS_OF_HEAD if operation.method.lower() == "head" else CHECKS
        case.validate_response(answer, checks=checks)

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
    assert {"/api/upload", "/api/uploads", "/api/jobs", "/api/stream", "/api/batches", "/session"} <= document[
        "paths"
    ].keys()
