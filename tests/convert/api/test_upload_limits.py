"""Limits hold while bytes arrive, for every replica, and whoever is refused hears why."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.api_fixtures import Serve
from support.api_server import Api, upload
from support.clock import Clock
from support.patience import eventually
from waybill.db import Database
from waybill_convert.settings import ConvertSettings

_MB = 1024 * 1024
_HEAD = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n%PDF-1.7\n'


class Raw:
    """A client that sends what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, api: Api, request: str) -> Raw:
        parts = urlsplit(api.url)
        raw = cls(*await asyncio.open_connection(parts.hostname, parts.port))
        raw.writer.write(request.replace("\n", "\r\n").encode())
        return raw

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(head[0].split()[1]), headers, body

    async def chunk(self, data: bytes) -> None:
        self.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self.writer.drain()


def chunked(path: str = "/api/upload") -> str:
    return (
        f"POST {path} HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nContent-Type: multipart/form-data; boundary=x\n\n"
    )


def stored(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_too_large_is_said_while_reading_and_nothing_stays(serve: Serve, folder: Path) -> None:
    async with serve(max_upload_mb=1) as api:
        raw = await Raw.connect(api, chunked())
        await raw.chunk(_HEAD)
        for _ in range(20):  # without an end: whoever waited for it would wait for ever
            await raw.chunk(b"x" * 64 * 1024)
        status, headers, body = await raw.answer()
        assert (status, json.loads(body)["code"]) == (413, "TOO_LARGE")
        assert "1 MB" in json.loads(body)["detail"]
        assert headers["content-type"] == "application/problem+json"
        raw.writer.close()
        assert stored(folder) == []


async def test_a_declared_length_is_refused_before_a_byte_is_read(serve: Serve) -> None:
    async with serve(max_upload_mb=1) as api:
        request = (
            "POST /api/upload HTTP/1.1\nHost: x\nContent-Length: 99999999\nExpect: 100-continue\n"
            "Content-Type: multipart/form-data; boundary=x\n\n"
        )
        raw = await Raw.connect(api, request)
        status, _, body = await raw.answer()
        assert (status, json.loads(body)["code"]) == (413, "TOO_LARGE"), "and no '100 Continue' before it"
        raw.writer.close()


async def test_a_refused_client_that_goes_on_sending_still_hears_why(serve: Serve) -> None:
    async with serve(max_upload_mb=1) as api:
        raw = await Raw.connect(api, chunked())
        await raw.chunk(_HEAD)
        for _ in range(160):  # ten times what it may, all of it before it listens
            await raw.chunk(b"x" * 64 * 1024)
        await raw.chunk(b"\r\n--x--\r\n")
        raw.writer.write(b"0\r\n\r\n")
        assert (await raw.answer())[0] == 413
        raw.writer.close()


async def test_a_client_that_hangs_up_leaves_nothing(api: Api, folder: Path, db: Database) -> None:
    raw = await Raw.connect(api, chunked())
    await raw.chunk(_HEAD + b"x" * 600_000)

    async def arriving() -> bool:
        return bool(stored(folder))

    await eventually(arriving)
    raw.writer.transport.abort()

    async def gone() -> bool:
        return not stored(folder)

    await eventually(gone)


async def test_other_bodies_are_small(api: Api) -> None:
    for path in ("/session", "/api/jobs/01890000-0000-7000-8000-000000000001/retry", "/no/such/path"):
        raw = await Raw.connect(api, chunked(path))
        await raw.chunk(b"x" * 70_000)
        status, _, body = await raw.answer()
        assert (status, json.loads(body)["code"]) == (413, "TOO_LARGE")
        raw.writer.close()
        answer = await api.client().post(path, content=b"x" * 70_000)
        assert answer.status_code == 413


async def test_silence_ends_an_upload(serve: Serve, folder: Path) -> None:
    async with serve(api_upload_timeout=0.3) as api:
        raw = await Raw.connect(api, chunked())
        await raw.chunk(_HEAD)
        assert (await raw.answer())[0] == 408
        raw.writer.close()
    assert stored(folder) == []


_TRICKLED = ("/session", "/api/jobs/01890000-0000-7000-8000-000000000001/retry")


@pytest.mark.parametrize("path", ["/api/upload", *(pytest.param(path, marks=pytest.mark.heavy) for path in _TRICKLED)])
async def test_a_body_that_trickles_is_not_waited_for(serve: Serve, folder: Path, path: str) -> None:
    async with serve(api_body_timeout=0.5) as api:
        raw = await Raw.connect(api, chunked(path))
        await raw.chunk(_HEAD)

        async def trickle() -> None:
            while True:  # never silent for long, and never done
                await raw.chunk(b"-")
                await asyncio.sleep(0.02)

        trickling = asyncio.create_task(trickle())
        async with asyncio.timeout(20):
            status, headers, body = await raw.answer()
            assert (status, json.loads(body)["code"]) == (408, "VALIDATION_ERROR")
            assert headers["connection"] == "close"
            await asyncio.wait([trickling])  # we hang up on it
        assert isinstance(trickling.exception(), ConnectionError)
        raw.writer.close()
    assert stored(folder) == []


async def test_a_slow_body_that_keeps_coming_is_waited_for(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waybill.web.guards._SLOWEST", 1)  # each byte is worth a second
    async with serve(api_body_timeout=5) as api:
        raw = await Raw.connect(api, chunked())
        await raw.chunk(_HEAD)
        for _ in range(3):
            await asyncio.sleep(0.01)
            await raw.chunk(b"x")
        await raw.chunk(b"\r\n--x--\r\n")
        raw.writer.write(b"0\r\n\r\n")
        assert (await raw.answer())[0] == 201
        raw.writer.close()


async def test_ten_uploads_a_minute_across_replicas(serve: Serve) -> None:
    async with serve(api_uploads_per_minute=10) as one, serve(api_uploads_per_minute=10) as two:
        first = await one.browser()
        second = two.client(cookies=dict(first.cookies))
        answers = [await upload(client) for _ in range(6) for client in (first, second)]
        assert [answer.status_code for answer in answers] == [201] * 10 + [429] * 2
        refused = answers[-1]
        assert refused.json()["code"] == "RATE_LIMITED"
        assert 1 <= int(refused.headers["retry-after"]) <= 6
        assert (await upload(await two.browser())).status_code == 201, "somebody else is not held up"
        assert (await first.get("/api/jobs")).status_code == 200, "looking is not limited"


async def test_at_once_no_more_get_through_than_one_after_the_other(serve: Serve) -> None:
    async with serve(api_uploads_per_minute=5) as api:
        browser = await api.browser()
        answers = await asyncio.gather(*(upload(browser) for _ in range(12)))
        assert sorted(answer.status_code for answer in answers) == [201] * 5 + [429] * 7


async def test_who_throws_cookies_away_is_counted_by_address(serve: Serve) -> None:
    async with serve(api_uploads_per_minute=2) as api:
        answers = [await upload(api.client()) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [201, 201, 429]


async def test_a_slow_start_waits_politely(serve: Serve, clock: Clock) -> None:
    async with serve(api_uploads_per_minute=2) as api:
        browser = await api.browser()
        for _ in range(2):
            assert (await upload(browser)).status_code == 201
        wait = int((await upload(browser)).headers["retry-after"])
        await clock.forward(wait)
        assert (await upload(browser)).status_code == 201
        assert (await upload(browser)).status_code == 429


async def test_who_makes_sessions_at_will_is_counted_by_address(serve: Serve) -> None:
    async with serve(api_address_uploads_per_minute=3) as api:
        answers = [await upload(await api.browser()) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [201, 201, 201, 429]
        assert int(answers[-1].headers["retry-after"]) > 0
        assert (await upload(api.client(await api.key()))).status_code == 201, "a key is known by itself"


async def test_behind_a_proxy_it_is_the_forwarded_address_that_counts(serve: Serve) -> None:
    async def from_(api: Api, address: str) -> int:
        browser = await api.browser()
        browser.headers["X-Forwarded-For"] = address
        return (await upload(browser)).status_code

    async with serve(api_address_uploads_per_minute=1, api_trusted_proxies="127.0.0.0/8") as api:
        assert [await from_(api, "9.9.9.9") for _ in range(2)] == [201, 429]
        assert await from_(api, "9.9.9.10") == 201
        assert await from_(api, "1.2.3.4, 9.9.9.9") == 429, "what a client says before the proxy does is not believed"
    async with serve(api_address_uploads_per_minute=1) as api:
        assert [await from_(api, address) for address in ("8.8.8.1", "8.8.8.2")] == [201, 429]


def test_an_address_has_a_limit_unless_somebody_lifts_it() -> None:
    assert ConvertSettings().api_address_uploads_per_minute == 60


@pytest.mark.parametrize("header", ["X-Forwarded-For: 9.9.9.9", "X-Forwarded-Proto: https"])
async def test_forwarded_headers_of_strangers_mean_nothing(serve: Serve, header: str) -> None:
    name, _, value = header.partition(": ")
    async with serve() as api:
        answer = await upload(api.client(headers={name: value}))
        assert "secure" not in answer.headers["set-cookie"].lower()
    async with serve(api_trusted_proxies="127.0.0.0/8") as api:
        answer = await upload(api.client(headers={name: value}))
        assert ("secure" in answer.headers["set-cookie"].lower()) == (value == "https")
