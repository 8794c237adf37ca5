"""Connections: who sends half a request is not waited for, and a lack of descriptors does not fill the log."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import time

import pytest
from structlog.testing import capture_logs

from support.api_server import Api
from support.patience import PATIENCE
from waybill.http.accept_errors import AcceptErrors
from waybill.http.timed_protocol import TimedProtocol


async def connect(api: Api) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = api.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


@pytest.fixture
async def hurried(monkeypatch: pytest.MonkeyPatch, api: Api) -> Api:
    monkeypatch.setattr(TimedProtocol, "headers_within", 0.3)
    return api


@pytest.mark.parametrize("sent", [b"", b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: "])
async def test_half_sent_headers_are_not_waited_for(hurried: Api, sent: bytes) -> None:
    connections = [await connect(hurried) for _ in range(30)]
    for _, writer in connections:
        writer.write(sent)
    async with asyncio.timeout(PATIENCE):
        assert [await reader.read() for reader, _ in connections] == [b""] * 30
    for _, writer in connections:
        writer.close()


async def test_a_client_that_sends_a_byte_now_and_then_gains_no_time(hurried: Api) -> None:
    reader, writer = await connect(hurried)
    writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
    begun = time.monotonic()
    closed = asyncio.create_task(reader.read())
    while not closed.done():
        assert time.monotonic() < begun + PATIENCE
        writer.write(b"X: y\r\n")
        await asyncio.wait((closed,), timeout=0.05)
    with contextlib.suppress(ConnectionResetError):  # the answer to a byte that arrives after the end
        assert await closed == b""
    writer.close()


async def test_a_connection_may_rest_between_requests_but_not_within_one(hurried: Api) -> None:
    reader, writer = await connect(hurried)

    async def ask() -> None:
        writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")

    await ask()
    another = await connect(hurried)
    assert await another[0].read() == b"", "meanwhile the time for headers has passed"
    await ask()
    writer.write(b"GET /livez HTTP/1.1\r\n")
    async with asyncio.timeout(PATIENCE):
        assert await reader.read() == b""
    for each in (writer, another[1]):
        each.close()


async def test_what_is_no_request_is_answered_with_a_problem_document(api: Api) -> None:
    reader, writer = await connect(api)
    writer.write(b"this is no request\r\n\r\n")
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in answer
    writer.close()


async def test_a_client_that_opens_connections_without_end_shuts_nobody_out(
    monkeypatch: pytest.MonkeyPatch, api: Api
) -> None:
    monkeypatch.setattr(TimedProtocol, "most_connections", 20)
    answered = await connect(api)  # by another visitor, who rests between two requests
    stream, key = await connect(api), await api.key()
    stream[1].write(b"GET /api/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key.encode() + b"\r\n\r\n")
    assert (await stream[0].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    flood = [await connect(api) for _ in range(60)]
    for _, writer in flood:
        writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
    async with asyncio.timeout(PATIENCE):
        closed = [asyncio.create_task(reader.read()) for reader, _ in flood]
        while sum(task.done() for task in closed) < 60 - 20:
            await asyncio.wait([task for task in closed if not task.done()], return_when=asyncio.FIRST_COMPLETED)
        visitor = await connect(api)
        visitor[1].write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await visitor[0].readuntil(b"}")).startswith(b"HTTP/1.1 200")
    assert not stream[0].at_eof(), "whoever waits for something stays"
    for task in closed:
        task.cancel()
    for _, writer in [answered, stream, visitor, *flood]:
        writer.close()


async def test_a_lack_of_descriptors_is_logged_once_in_a_while() -> None:
    now = 0.0
    errors = AcceptErrors(lambda: now)
    loop = asyncio.get_running_loop()
    with socket.socket() as listener, capture_logs() as logs:
        context = {"message": "m", "exception": OSError(errno.EMFILE, "Too many open files"), "socket": listener}
        for _ in range(500):
            errors.handle(loop, context)
        now = 61.0
        errors.handle(loop, context)
    assert [(line["event"], line["not_logged"]) for line in logs] == [
        ("cannot_accept_connections", 0),
        ("cannot_accept_connections", 499),
    ]
