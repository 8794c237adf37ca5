"""Requests that one server reads in one way and the next in another are refused, by the API and the gateway alike."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

import pytest

from support.api_server import Api
from support.gateway import Gateway
from support.patience import PATIENCE

HOST = b"Host: waybill\r\n"
LONG = b"x" * 20_000


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    rest: bytes
    """What came after it."""


async def exchange(port: int, sent: bytes) -> bytes:
    """Send these bytes, and read until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(PATIENCE):
            writer.write(sent)
            return await reader.read()
    finally:
        writer.close()


def parsed(answer: bytes) -> Answer:
    head, _, rest = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", 0))
    return Answer(int(status.split()[1]), headers, rest[:length], rest[length:])


def refused(answer: bytes, status: int, what: str) -> dict[str, Any]:
    """The problem document, which is the only thing that was answered."""
    one = parsed(answer)
    assert one.status == status, (what, answer)
    assert one.headers["content-type"] == "application/problem+json"
    assert one.headers["connection"] == "close"
    assert one.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in one.headers["content-security-policy"]
    assert one.headers["cache-control"] == "no-store"
    assert not one.rest, "the bytes after it were read as another request"
    problem: dict[str, Any] = json.loads(one.body)
    assert (problem["status"], problem["code"], problem["key"]) == (status, "VALIDATION_ERROR", "request.malformed")
    return problem


@pytest.fixture(params=["api", "gateway"])
def port(request: pytest.FixtureRequest) -> int:
    if request.param == "api":
        api: Api = request.getfixturevalue("api")
        return int(api.url.rpartition(":")[2])
    gateway: Gateway = request.getfixturevalue("gateway")
    return gateway.port


SMUGGLED = b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
BAD: list[tuple[str, int, bytes]] = [
    ("two lengths", 400, b"POST /x HTTP/1.1\r\n%bContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("two lengths", 400, b"POST /x HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
    ("encoded 1.0", 400, b"POST /x HTTP/1.0\r\n%bTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("unknown encoding", 501, b"POST /x HTTP/1.1\r\n%bTransfer-Encoding: gzip, chunked\r\n\r\n"),
    ("two encodings", 501, b"POST /x HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n"),
    ("two numbers", 400, b"POST /x HTTP/1.1\r\n%bContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
    ("two numbers in one", 400, b"POST /x HTTP/1.1\r\n%bContent-Length: 5, 6\r\n\r\n"),
    ("a sign", 400, b"POST /x HTTP/1.1\r\n%bContent-Length: +5\r\n\r\nhello"),
    ("a negative length", 400, b"POST /x HTTP/1.1\r\n%bContent-Length: -5\r\n\r\n"),
    ("a blank in a length", 400, b"POST /x HTTP/1.1\r\n%bContent-Length: 1 2\r\n\r\n"),
    ("a blank before the colon", 400, b"POST /x HTTP/1.1\r\n%bContent-Length : 5\r\n\r\nhello"),
    ("bare line feeds", 400, b"GET /livez HTTP/1.1\n%b\n\n"),
    ("a bare line feed", 400, b"GET /livez HTTP/1.1\r\nA: b\n%b\r\n"),
    ("a bare carriage return", 400, b"GET /livez HTTP/1.1\r\nA: b\rC: d\r\n%b\r\n"),
    ("a bare blank line", 400, b"POST /x HTTP/1.1\r\n%bContent-Length: 5\r\n\nhello\r\n\r\n"),
    ("a folded header", 400, b"GET /livez HTTP/1.1\r\n%bA: b\r\n c\r\n\r\n"),
    ("a folded header", 400, b"GET /livez HTTP/1.1\r\n%bA: b\r\n\tc\r\n\r\n"),
    ("a folded length", 400, b"POST /x HTTP/1.1\r\n%bContent-Length:\r\n 5\r\n\r\nhello"),
    ("no host", 400, b"GET /livez HTTP/1.1\r\nA: b\r\n\r\n"),
    ("two hosts", 400, b"GET /livez HTTP/1.1\r\n%bHost: another\r\n\r\n"),
    ("an empty host", 400, b"GET /livez HTTP/1.1\r\nHost:\r\n\r\n"),
    ("a bad host", 400, b"GET /livez HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    ("a bad host", 400, b"GET /livez HTTP/1.1\r\nHost: user@a\r\n\r\n"),
    ("a bad host", 400, b"GET /livez HTTP/1.1\r\nHost: a b\r\n\r\n"),
    ("a bad port", 400, b"GET /livez HTTP/1.1\r\nHost: a:b\r\n\r\n"),
    ("a bad host in the line", 400, b"GET http://a@b/livez HTTP/1.1\r\n%b\r\n"),
    ("no line", 400, b"this is no request\r\n%b\r\n"),
    ("a bad method", 400, b"G(T /livez HTTP/1.1\r\n%b\r\n"),
    ("a bad version", 400, b"GET /livez HTTP/11\r\n%b\r\n"),
    ("a fragment", 400, b"GET /livez#a HTTP/1.1\r\n%b\r\n"),
    ("another server's address", 400, b"CONNECT example.com:443 HTTP/1.1\r\n%b\r\n"),
    ("a bad header", 400, b"GET /livez HTTP/1.1\r\n%bno colon\r\n\r\n"),
    ("a bad name", 400, b"GET /livez HTTP/1.1\r\n%bA(: b\r\n\r\n"),
    ("a NUL", 400, b"GET /livez HTTP/1.1\r\n%bA: b\0\r\n\r\n"),
    ("half an escape", 400, b"GET /livez%%2 HTTP/1.1\r\n%b\r\n"),
    ("no escape", 400, b"GET /livez%%zz HTTP/1.1\r\n%b\r\n"),
    ("not UTF-8", 400, b"GET /livez%%ff HTTP/1.1\r\n%b\r\n"),
    ("an escaped NUL", 400, b"GET /livez%%00 HTTP/1.1\r\n%b\r\n"),
    ("TLS", 400, b"\x16\x03\x01\x02\x00\x01\x00"),
    ("a long line", 431, b"GET /" + LONG + b" HTTP/1.1\r\n%b\r\n"),
    ("a long header", 431, b"GET /livez HTTP/1.1\r\n%bA: " + LONG + b"\r\n\r\n"),
    ("many headers", 431, b"GET /livez HTTP/1.1\r\n%b" + b"A: b\r\n" * 4000 + b"\r\n"),
]


async def test_a_malformed_request_is_a_problem_and_ends_the_connection(port: int) -> None:
    requests = [sent % HOST if b"%b" in sent else sent for _, _, sent in BAD]
    answers = await asyncio.gather(*(exchange(port, request + SMUGGLED) for request in requests))
    for (what, status, _), answer in zip(BAD, answers, strict=True):
        assert refused(answer, status, what)["detail"]


BAD_CHUNKS = [
    b"zz\r\nhello\r\n0\r\n\r\n",
    b"-1\r\nhello\r\n0\r\n\r\n",
    b"+5\r\nhello\r\n0\r\n\r\n",
    b"0x5\r\nhello\r\n0\r\n\r\n",
    b"5\nhello\n0\n\n",
    b"5\r\nhelloXX0\r\n\r\n",
    b"5\r\nhello\r\n0\r\nA: b\n\r\n",
    b"5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n",
    b"5\r\nhello\r\n0\r\nno colon\r\n\r\n",
]


async def test_a_malformed_chunk_ends_the_connection(port: int) -> None:
    head = b"POST /process HTTP/1.1\r\n" + HOST + b"Content-Type: multipart/form-data; boundary=x\r\n"
    encoded = head + b"Transfer-Encoding: chunked\r\n\r\n"
    for chunks in BAD_CHUNKS:
        answer = await exchange(port, encoded + chunks + SMUGGLED)
        assert answer.count(b"HTTP/1.1 ") == 1, f"the bytes after {chunks!r} were read as another request"
        assert 400 <= parsed(answer).status < 500
        assert parsed(answer).headers["content-type"] == "application/problem+json"


GOOD = [
    b"GET /livez HTTP/1.1\r\nHost: waybill:8080\r\n",
    b"GET /livez HTTP/1.1\r\nHost: [::1]:8080\r\n",
    b"GET /livez HTTP/1.1\r\nHost: my_host.example\r\n",
    b"GET /livez HTTP/1.0\r\n",
    b"GET http://other.example/livez HTTP/1.1\r\n" + HOST,
    b"GET /live%7A HTTP/1.1\r\n" + HOST,
    b"GET /livez?q=100%&x=%ff HTTP/1.1\r\n" + HOST,
    b"GET /livez HTTP/1.1\r\n" + HOST + b"A: " + b"x" * 12_000 + b"\r\n",
    b"GET /livez HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nContent-Length: 2\r\n",
]


async def test_what_is_well_formed_is_answered(port: int) -> None:
    for sent in GOOD:
        body = b"{}" if b"Content-Length" in sent else b""
        one = parsed(await exchange(port, sent + b"Connection: close\r\n\r\n" + body))
        assert (one.status, json.loads(one.body)) == (200, {"status": "alive"}), sent


async def test_requests_may_follow_each_other_on_one_connection_also_in_pieces(port: int) -> None:
    chunked = (
        b"POST /livez HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nT: v\r\n\r\n"
    )
    sent = SMUGGLED + chunked + b"GET /livez HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(PATIENCE):
        for at in range(0, len(sent), 7):
            writer.write(sent[at : at + 7])
            await writer.drain()
            await asyncio.sleep(0)
        received = await reader.read()
    writer.close()
    first = parsed(received)
    second = parsed(first.rest)
    third = parsed(second.rest)
    assert (first.status, second.status, third.status, third.rest) == (200, 405, 200, b"")


async def test_a_client_that_waits_for_100_continue_hears_it(port: int) -> None:
    head = b"POST /process HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\nExpect: 100-continue\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(PATIENCE):
        writer.write(head + b"Content-Type: text/plain\r\nConnection: close\r\n\r\n")
        first = await reader.readuntil(b"\r\n\r\n")
        if first == b"HTTP/1.1 100 Continue\r\n\r\n":
            writer.write(b"too small")
            first = await reader.readuntil(b"\r\n\r\n")
        assert 400 <= parsed(first).status < 500
    writer.close()
