"""An HTTP client that sends prepared bytes, which needs as little processor time as possible."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

from benchmarks.arena import ContestantFailed

BOUNDARY = "benchmark-boundary"


class Connection:
    """A connection that stays open, for one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, request: bytes, *, expect: int = 200) -> bytes:
        """Send the request and return the body of the answer. Fails if the answer has another status."""
        self._writer.write(request)
        status, body = await self._answer()
        if status != expect:
            raise ContestantFailed(f"The answer was {status}: {body[:500].decode(errors='replace')}")
        return body

    async def _answer(self) -> tuple[int, bytes]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        _, found, rest = head.partition(b"\r\ncontent-length:")
        if found:
            return status, await self._reader.readexactly(int(rest.partition(b"\r\n")[0]))
        body = b""
        while size := int(await self._reader.readline(), 16):
            body += await self._reader.readexactly(size)
            await self._reader.readline()
        await self._reader.readline()
        return status, body

    def close(self) -> None:
        self._writer.close()


@contextlib.asynccontextmanager
async def connection(port: int) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    opened = Connection(reader, writer)
    try:
        yield opened
    finally:
        opened.close()


def get(path: str, headers: Mapping[str, str] | None = None) -> bytes:
    return _head("GET", path, headers or {}) + b"\r\n"


def post(path: str, content_type: str, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """A request. `body` may be only the beginning of a body whose full length is in `headers`."""
    known = {"Content-Type": content_type, "Content-Length": str(len(body)), **(headers or {})}
    return _head("POST", path, known) + b"\r\n" + body


def form(document: bytes, **fields: str) -> tuple[str, bytes]:
    """A form with a document and some fields: its media type and its bytes."""
    head = "".join(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    head += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="invoice.pdf"\r\n'
    head += "Content-Type: application/pdf\r\n\r\n"
    return f"multipart/form-data; boundary={BOUNDARY}", head.encode() + document + f"\r\n--{BOUNDARY}--\r\n".encode()


async def is_ready(port: int) -> bool:
    try:
        async with connection(port) as asking:
            await asking.ask(get("/readyz"))
    except (OSError, EOFError, ContestantFailed):
        return False
    return True


def _head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n").encode()
