"""Live streams: what changes is told once, at once, and again to who was away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx

from support.api_fixtures import Serve
from support.api_server import Api, Converter, uploaded
from support.clock import Clock
from support.patience import eventually
from waybill.db import Database
from waybill.security import keys
from waybill_convert.cursors import Since


class Events:
    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> tuple[str, dict[str, Any]]:
        """Id and data of the next event."""
        async with asyncio.timeout(20):
            cursor = ""
            async for line in self._lines:
                if line.startswith("id: "):
                    cursor = line[4:]
                if line.startswith("data: "):
                    return cursor, json.loads(line[6:])
        raise AssertionError("the stream ended")

    async def until(self, job: str, status: str) -> str:
        """The cursor with which the job has that status."""
        while True:
            cursor, data = await self.next()
            if any(one["id"] == job and one["status"] == status for one in data["jobs"]):
                return cursor

    async def to_the_end(self) -> list[str]:
        async with asyncio.timeout(20):
            return [line async for line in self._lines]


@asynccontextmanager
async def following(client: httpx.AsyncClient, **headers: str) -> AsyncIterator[Events]:
    async with client.stream("GET", "/api/stream", headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Events(response)


async def test_changes_are_told_as_they_happen(browser: httpx.AsyncClient, converter: Converter) -> None:
    async with following(browser) as events:
        _, first = await events.next()
        assert (first["jobs"], first["active_count"]) == ([], 0)
        job = await uploaded(browser)
        await events.until(job, "queued")
        (lease,) = await converter.take()
        await events.until(job, "processing")
        await converter.finish(lease)
        await events.until(job, "complete")
        await browser.delete(f"/api/jobs/{job}")
        while job not in (await events.next())[1]["deleted"]:
            pass


async def test_who_comes_back_goes_on_where_it_was(browser: httpx.AsyncClient, converter: Converter) -> None:
    async with following(browser) as events:
        await events.next()
        job = await uploaded(browser)
        seen = await events.until(job, "queued")
    (lease,) = await converter.take()
    await converter.finish(lease)
    other = await uploaded(browser)
    async with following(browser, **{"Last-Event-ID": seen}) as events:
        _, missed = await events.next()
        assert {(one["id"], one["status"]) for one in missed["jobs"]} == {(job, "complete"), (other, "queued")}
    answer = await browser.get("/api/stream", headers={"Last-Event-ID": "nonsense"})
    assert answer.status_code == 422
    since = (await browser.get("/api/jobs")).json()["since"]
    third = await uploaded(browser)
    async with browser.stream("GET", f"/api/stream?since={since}") as response:
        assert third in [one["id"] for one in (await Events(response).next())[1]["jobs"]]


async def test_a_cursor_from_the_future_starts_over(browser: httpx.AsyncClient) -> None:
    job = await uploaded(browser)
    async with following(browser, **{"Last-Event-ID": str(Since(10**12))}) as events:
        assert [one["id"] for one in (await events.next())[1]["jobs"]] == [job]


async def test_an_owner_has_so_many_streams_and_no_more(serve: Serve) -> None:
    async with serve(api_streams_per_owner=2) as api:
        browser = await api.browser()
        async with following(browser) as one, following(browser) as two:
            await one.next()
            await two.next()
            answer = await browser.get("/api/stream")
            assert (answer.status_code, answer.json()["code"]) == (429, "RATE_LIMITED")
            assert int(answer.headers["retry-after"]) > 0
            async with following(await api.browser()) as other:
                await other.next()

        async def room() -> bool:
            async with browser.stream("GET", "/api/stream") as again:
                return again.status_code == 200

        await eventually(room)


async def test_who_drops_the_cookie_gains_no_streams(serve: Serve) -> None:
    async with serve(api_streams_per_address=3) as api, AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(following(api.client())) for _ in range(3)]
        for events in opened:
            await events.next()
        answer = await api.client().get("/api/stream")
        assert (answer.status_code, answer.json()["code"]) == (429, "RATE_LIMITED")
        assert int(answer.headers["retry-after"]) > 0
        async with following(api.client(await api.key())) as program:
            await program.next()


async def test_streams_end_when_the_server_stops(serve: Serve) -> None:
    async with serve() as api, following(await api.browser()) as events:
        await events.next()
        api.server.should_exit = True
        await events.to_the_end()


async def test_keep_alives_keep_coming(api: Api, monkeypatch: Any) -> None:
    monkeypatch.setattr("waybill.web.live_streams.KEEP_ALIVE", 0.05)
    async with (await api.browser()).stream("GET", "/api/stream") as response, asyncio.timeout(20):
        comments = 0
        async for line in response.aiter_lines():
            comments += line.startswith(":")
            if comments == 3:
                break


async def test_a_stream_ends_when_its_key_is_revoked(api: Api, db: Database) -> None:
    revoked = await api.key("acme")
    browser = api.client()
    assert (await browser.post("/session", json={"key": revoked})).status_code == 200
    lasting = api.client(await api.key("acme"))
    async with (
        following(api.client(revoked)) as program,
        following(browser) as page,
        following(lasting) as other,
    ):
        for events in (program, page, other):
            await events.next()
        parsed = keys.parse(revoked)
        assert parsed is not None
        async with db.hot() as connection:
            await keys.revoke(connection, parsed[0])
        await program.to_the_end()
        await page.to_the_end()
        await other.until(await uploaded(lasting), "queued")


async def test_a_stream_ends_when_its_key_expires(api: Api, clock: Clock, monkeypatch: Any) -> None:
    monkeypatch.setattr("waybill.web.key_cache._LASTS", 0.1)  # what is known of a key is good for so long
    async with following(api.client(await api.key(expires_in=3600))) as events:
        await events.next()
        await clock.forward(3601)
        await events.to_the_end()


async def test_signing_out_ends_the_sessions_streams_on_every_replica(serve: Serve) -> None:
    async with serve() as one, serve() as two:
        browser = await one.browser()
        cookies = dict(browser.cookies)
        async with (
            following(browser) as here,
            following(two.client(cookies=cookies)) as there,
            following(await two.browser()) as stranger,
        ):
            for events in (here, there, stranger):
                await events.next()
            assert (await browser.post("/session/end")).status_code == 204
            await here.to_the_end()
            await there.to_the_end()
            two.context.streams.close()
            await stranger.to_the_end()


async def test_an_open_breaker_is_told(browser: httpx.AsyncClient, converter: Converter) -> None:
    async with following(browser) as events:
        assert (await events.next())[1]["on_hold"] is None
        await converter.connection.execute(
            "INSERT INTO breakers (name, state, open_until, reason)"
            " VALUES ('gateway', 'open', now() + interval '1 minute', 'down')"
        )
        await converter.connection.execute("SELECT pg_notify('waybill_control', 'look')")
        assert (await events.next())[1]["on_hold"]["until"]
        await converter.connection.execute("DELETE FROM breakers")
        await converter.connection.execute("SELECT pg_notify('waybill_control', 'look')")
        assert (await events.next())[1]["on_hold"] is None


async def test_a_change_after_a_quiet_time_is_told_at_once(browser: httpx.AsyncClient, monkeypatch: Any) -> None:
    async with following(browser) as events:
        await events.next()
        monkeypatch.setattr("waybill.web.live_streams._TOGETHER", 1000)
        monkeypatch.setattr("waybill.web.live_streams._now", lambda: asyncio.get_running_loop().time() + 2000)
        await events.until(await uploaded(browser), "queued")


async def test_what_follows_a_change_is_gathered(
    browser: httpx.AsyncClient, converter: Converter, monkeypatch: Any
) -> None:
    async with following(browser) as events:
        await events.next()
        job = await uploaded(browser)
        await events.until(job, "queued")
        monkeypatch.setattr("waybill.web.live_streams._TOGETHER", 1)
        (lease,) = await converter.take()
        for number in range(20):
            await converter.connection.execute("UPDATE jobs SET progress = $1", number / 20)
        await converter.finish(lease)
        told = 0
        while (await events.next())[1]["counts"]["complete"] == 0:
            told += 1
        assert told < 10


async def test_a_program_follows_on_when_listening_was_lost_for_a_moment(api: Api, db: Database) -> None:
    program, browser = api.client(await api.key()), await api.browser()
    async with following(program) as events, following(browser) as page:
        await events.next()
        await page.next()
        async with db.hot() as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
        await page.to_the_end()  # its session may have been ended meanwhile; a browser comes back by itself
        await events.until(await uploaded(program), "queued")


async def test_without_listening_a_stream_asks_now_and_then(serve: Serve, monkeypatch: Any) -> None:
    monkeypatch.setattr("waybill.changes.subscriptions.BLIND", 0.1)
    async with serve() as api:
        await api.context.changes.stop()
        assert not api.context.changes.listening
        browser = await api.browser()
        async with following(browser) as events:
            await events.next()
            job = await uploaded(browser)
            await events.until(job, "queued")
