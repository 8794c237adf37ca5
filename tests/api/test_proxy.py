"""Behind a real nginx: the same setting decides about addresses, the scheme and cookies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from support.api_fixtures import Serve
from support.api_server import Api
from support.patience import PATIENCE, eventually
from support.proxy import proxy


def visitor(url: str, api: Api, address: str) -> httpx.AsyncClient:
    """A client that claims to be a proxy for this address, as anybody can."""
    client = httpx.AsyncClient(base_url=url, headers={"X-Forwarded-For": address}, trust_env=False, timeout=30)
    api.clients.append(client)
    return client


async def reachable(url: str, api: Api) -> None:
    async def look() -> bool:
        try:
            return (await visitor(url, api, "192.0.2.1").get("/livez")).status_code == 200
        except httpx.TransportError:
            return False

    await eventually(look)


@pytest.mark.parametrize("trusted", ["127.0.0.0/8", ""])
async def test_only_a_trusted_proxy_says_who_asks_and_how(serve: Serve, tmp_path: Path, trusted: str) -> None:
    async with serve(api_trusted_proxies=trusted, api_address_reads_per_minute=5) as api:
        port = int(api.url.rpartition(":")[2])
        with proxy(port, tmp_path, scheme="https") as url:
            await reachable(url, api)
            page = await visitor(url, api, "192.0.2.2").get("/")
            assert ("secure" in page.headers["set-cookie"].lower()) is bool(trusted)
            origin = {"Origin": url.replace("http:", "https:")}
            form = await visitor(url, api, "192.0.2.3").post("/theme", data={"theme": "dark"}, headers=origin)
            assert form.status_code == (303 if trusted else 403), "it is our own page, if it came by HTTPS"
            # Our clients are on loopback as well, so they count as another trusted proxy in front of the real one.
            asked = [(await visitor(url, api, "192.0.2.4").get("/api/jobs")).status_code for _ in range(7)]
            assert 429 in asked
            other = (await visitor(url, api, "192.0.2.5").get("/api/jobs")).status_code
            assert other == (200 if trusted else 429)


async def test_a_live_stream_and_a_head_come_through(serve: Serve, tmp_path: Path) -> None:
    async with serve(api_trusted_proxies="127.0.0.0/8") as api:
        with proxy(int(api.url.rpartition(":")[2]), tmp_path, scheme="https") as url:
            await reachable(url, api)
            client = visitor(url, api, "192.0.2.2")
            head = await client.head("/api/stream")
            assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
            async with asyncio.timeout(PATIENCE), client.stream("GET", "/api/stream") as stream:
                lines = stream.aiter_lines()
                while not (await anext(lines)).startswith("event: change"):
                    pass
