"""Compression: text is compressed for whoever takes it, and nothing that would be harmed by it."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from waybill.web.compression import Compression

LONG = "nothing new " * 10_000


async def page(_request: Request) -> Response:
    return HTMLResponse(LONG, headers={"ETag": '"1"', "Vary": "Cookie"})


async def short(_request: Request) -> Response:
    return JSONResponse({"short": True})


async def image(_request: Request) -> Response:
    return Response(LONG, media_type="image/png")


async def events(_request: Request) -> Response:
    async def each() -> AsyncIterator[str]:
        yield LONG

    return StreamingResponse(each(), media_type="text/event-stream")


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    routes = [Route(f"/{each.__name__}", each) for each in (page, short, image, events)]
    app = Compression(Starlette(routes=routes))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as found:
        yield found


async def test_a_long_text_is_compressed_for_whoever_takes_it(client: httpx.AsyncClient) -> None:
    async with client.stream("GET", "/page") as answer:
        raw = b"".join([chunk async for chunk in answer.aiter_raw()])
    assert gzip.decompress(raw).decode() == LONG
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) == len(raw) < len(LONG) / 50
    assert answer.headers["vary"] == "Cookie, Accept-Encoding"
    assert answer.headers["etag"] == 'W/"1"', "other bytes need another strong tag"
    plain = await client.get("/page", headers={"Accept-Encoding": "identity"})
    assert ("content-encoding" in plain.headers, plain.headers["etag"], plain.text) == (False, '"1"', LONG)


@pytest.mark.parametrize("path", ["/short", "/image", "/events"])
async def test_short_texts_pictures_and_event_streams_are_not(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert "content-encoding" not in answer.headers
    assert answer.status_code == 200


@pytest.mark.parametrize(("site", "is_compressed"), [("same-origin", True), ("none", True), ("cross-site", False)])
async def test_another_site_learns_nothing_from_lengths(
    client: httpx.AsyncClient, site: str, is_compressed: bool
) -> None:
    answer = await client.get("/page", headers={"Sec-Fetch-Site": site})
    assert ("content-encoding" in answer.headers) == is_compressed
