"""HEAD is answered like GET without its body, and a refused method is told which ones there are."""

from __future__ import annotations

import uuid

import httpx

from support.api_server import Api, Converter, uploaded
from support.gateway import Gateway

VOLATILE = {"x-request-id", "date", "set-cookie"}


def headers_of(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in VOLATILE}


async def test_head_has_the_headers_of_get_and_no_body(api: Api, converter: Converter) -> None:
    client = api.client(await api.key())
    job = await uploaded(client)
    await converter.finish_all(b"<a>" + b"x" * 100_000 + b"</a>")
    missing = f"/api/jobs/{uuid.uuid4()}"
    for path in (
        "/livez",
        "/readyz",
        "/api/healthz",
        "/api/openapi.json",
        "/api/session",
        "/api/mappings",
        "/api/jobs",
        f"/api/jobs/{job}",
        f"/api/jobs/{job}/events",
        f"/api/jobs/{job}/download",
        f"/api/jobs/{job}/provenance",
        "/api/jobs/download",
        "/",
        "/queue",
        "/sign-in",
        f"/review/{job}",
        missing,
        f"{missing}/download",
        "/nowhere",
    ):
        head, get = await client.head(path), await client.get(path)
        assert (head.status_code, head.content) == (get.status_code, b""), path
        assert headers_of(head) == headers_of(get), path
    head = await client.head(f"/api/jobs/{job}/download")
    assert int(head.headers["content-length"]) == 100_007


async def test_asking_about_a_result_is_no_download(api: Api, converter: Converter) -> None:
    client = api.client(await api.key())
    job = await uploaded(client)
    await converter.finish_all()
    for path in (f"/api/jobs/{job}/download", "/api/jobs/download", f"/api/jobs/download?ids={job}"):
        assert (await client.head(path)).status_code == 200
    assert await converter.connection.fetchval("SELECT downloaded_at IS NULL FROM conversions")
    await client.get(f"/api/jobs/{job}/download")
    assert await converter.connection.fetchval("SELECT downloaded_at IS NOT NULL FROM conversions")


async def test_asking_about_a_stream_opens_none(api: Api, browser: httpx.AsyncClient) -> None:
    for _ in range(api.context.settings.api_streams_per_owner + 1):
        answer = await browser.head("/api/stream")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert (await browser.head("/api/stream?since=nonsense")).status_code == 422


REFUSED = [
    ("DELETE", "/api/jobs/download", "GET, HEAD"),
    ("POST", "/api/jobs", "GET, HEAD"),
    ("PUT", f"/api/jobs/{uuid.UUID(int=7)}", "DELETE, GET, HEAD"),
    ("GET", f"/api/jobs/{uuid.UUID(int=7)}/pin", "DELETE, POST"),
    ("PATCH", f"/api/jobs/{uuid.UUID(int=7)}/revisions", "GET, HEAD, POST"),
    ("PUT", "/", "GET, HEAD, POST"),
    ("HEAD", "/api/upload", "POST"),
    ("PUT", "/api/session", "DELETE, GET, HEAD"),
    ("OPTIONS", "/livez", "GET, HEAD"),
    ("BREW", "/queue", "GET, HEAD"),
]


async def test_a_refused_method_is_told_every_other_one(api: Api) -> None:
    client = api.client(headers={"Origin": api.url})
    for method, path, allowed in REFUSED:
        answer = await client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed), (method, path)
        assert answer.headers["content-type"] == "application/problem+json"


def test_the_gateway_does_the_same(gateway: Gateway) -> None:
    for path in ("/livez", "/readyz", "/mappings", "/nowhere"):
        head, get = gateway.client.head(path), gateway.client.get(path)
        assert (head.status_code, head.content) == (get.status_code, b"")
        assert headers_of(head) == headers_of(get)
    for method, path, allowed in (("GET", "/process", ["POST"]), ("POST", "/mappings", ["GET", "HEAD"])):
        answer = gateway.client.request(method, path)
        assert (answer.status_code, sorted(answer.headers["allow"].split(", "))) == (405, allowed)
