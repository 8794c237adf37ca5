"""Limits over HTTP: what is asked for too often gets a 429 that says when to come back."""

from __future__ import annotations

import httpx

from support.api_fixtures import Serve
from support.api_server import uploaded


async def statuses(client: httpx.AsyncClient, path: str, times: int) -> list[int]:
    answers = [await client.get(path) for _ in range(times)]
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers if answer.status_code == 429)
    return [answer.status_code for answer in answers]


async def test_reads_are_limited_by_session_address_and_tenant(serve: Serve) -> None:
    # The pace is slow, so that nothing is granted again while the test runs.
    async with serve(api_reads_per_minute=6, api_address_reads_per_minute=12, api_key_reads_per_minute=9) as api:
        one = await api.browser()
        job = await uploaded(one)
        assert (await statuses(one, f"/api/jobs/{job}", 8))[:5] == [200] * 5
        assert 429 in await statuses(one, "/api/jobs", 3)
        anybody = [await api.client().get("/api/jobs") for _ in range(12)]
        assert {answer.status_code for answer in anybody} == {200, 429}, "a browser without a cookie has an address"
        assert set(await statuses(api.client(await api.key()), "/api/jobs", 8)) == {200}
        assert set(await statuses(one, "/livez", 30)) == {200}, "probes are never refused"


async def test_pages_and_pictures_count_more_than_plain_reads(serve: Serve) -> None:
    async with serve(api_reads_per_minute=12) as api:
        browser = await api.browser()
        job = await uploaded(browser)
        assert await statuses(browser, f"/review/{job}", 3) == [409, 409, 429]
        other = await api.browser()
        job = await uploaded(other)
        assert await statuses(other, f"/api/jobs/{job}/pages/1", 3) == [409, 409, 429]
