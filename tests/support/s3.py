"""A server of the S3 protocol on loopback (moto's), and a line to it that can be slow, break, or answer nonsense.

The server is a process of its own, so it shares neither our interpreter's lock nor our memory, which tests measure.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
from pydantic import SecretStr

from waybill.storage import Storage, open_storage
from waybill.storage.factory import StorageAccess

KEY_ID, SECRET = "AKIATESTKEYIDENTIFIER", "the-secret-that-nobody-may-see"

_SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.disable()
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()  # until whoever started us is gone
"""
_AS_AMAZON = b"Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, Signature=x"
_GOOGLE_KEY = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
_numbers = itertools.count()


@contextmanager
def s3_server() -> Iterator[str]:
    """Run a server until the block or this process ends, and yield its URL."""
    command = [sys.executable, "-c", _SERVER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


class Bucket:
    """A bucket that tests look at without the storage under test."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.name = f"bucket-{next(_numbers)}"
        self._client = httpx.Client(base_url=f"{server}/{self.name}", trust_env=False, timeout=60)
        self._client.put("").raise_for_status()

    def storage(self, server: str | None = None, *, prefix: str = "/some/prefix", timeout: float = 10.0) -> Storage:
        url = f"s3://{self.name}{prefix}?endpoint={server or self.server}&region=us-east-1"
        return open_storage(url, StorageAccess(KEY_ID, SecretStr(SECRET), timeout, backoff=0.01))

    def google_storage(self, server: str) -> Storage:
        """The same bucket as a bucket of Google, through a line that translates."""
        key = SecretStr(json.dumps({**_GOOGLE_KEY, "gcs_base_url": server}))
        return open_storage(f"gs://{self.name}/some/prefix?endpoint={server}", StorageAccess(secret=key, backoff=0.01))

    def objects(self) -> list[str]:
        return self._keys("?list-type=2")

    def unfinished(self) -> list[str]:
        """Multipart uploads that were neither finished nor aborted."""
        return self._keys("?uploads")

    def _keys(self, query: str) -> list[str]:
        answer = self._client.get(query)
        answer.raise_for_status()
        return re.findall(r"<Key>([^<]*)</Key>", answer.text)

    def close(self) -> None:
        self._client.close()


@dataclass
class Request:
    """A request, as `Line.fate` sees it."""

    method: str
    path: str
    number: int
    """The number of the request, counted from 1."""


@dataclass
class Fault:
    """What happens to a request."""

    status: int = 0
    """If set, the line answers with this status and does not ask the server."""
    body: bytes = b""
    wait: asyncio.Event | None = None
    """The request waits until this is set. The server has not seen it yet."""
    swallow: bool = False
    """The server handles the request, but its answer and the connection are lost."""
    cut_after: int | None = None
    """Only this many bytes of the answer's body arrive."""


SLOW_DOWN = Fault(503, b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
BROKEN = Fault(500, b"<Error><Code>InternalError</Code></Error>")


async def _nothing() -> None:
    """Until the line is there."""


@dataclass
class Line:
    """The line: `fate` decides what happens to each request, and `seen` lists the requests."""

    fate: Callable[[Request], Fault | None] = lambda request: None
    url: str = ""
    seen: list[Request] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a request waits."""
    switch_off: Callable[[], Awaitable[None]] = _nothing
    switch_on: Callable[[], Awaitable[None]] = _nothing
    """While it is off, connections are refused, as if no server ran there."""
    google: bool = False
    """Whether clients speak Google's dialect, which differs from S3 in authentication and in the encoding of paths."""


@asynccontextmanager
async def line_to(server: str, *, google: bool = False) -> AsyncIterator[Line]:
    target = urlsplit(server)
    line = Line(google=google)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await _serve(line, reader, writer, target.hostname or "", target.port or 0)
            writer.close()
        finally:
            tasks.discard(task)
            if task.cancelling():
                writer.transport.abort()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**20)
    port = listener.sockets[0].getsockname()[1]
    line.url = f"http://127.0.0.1:{port}"

    async def switch_off() -> None:
        listener.close()
        for task in list(tasks):
            task.cancel()

    async def switch_on() -> None:
        nonlocal listener
        listener = await asyncio.start_server(serve, "127.0.0.1", port, limit=2**20)

    line.switch_off, line.switch_on = switch_off, switch_on
    try:
        yield line
    finally:
        listener.close()
        left = list(tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)  # lets the transports close


async def _serve(line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    """Handle one request. Each connection carries only one, which keeps this short."""
    head = await reader.readuntil(b"\r\n\r\n")
    method, path, _ = head.decode("latin-1").split(" ", 2)
    request = Request(method, path, len(line.seen) + 1)
    line.seen.append(request)
    length = re.search(rb"(?i)content-length: (\d+)", head)
    body = await reader.readexactly(int(length[1])) if length else b""
    fault = line.fate(request) or Fault()
    if fault.wait is not None:
        line.arrived.set()
        await fault.wait.wait()
    if fault.status:
        writer.write(b"HTTP/1.1 %d x\r\nConnection: close\r\n" % fault.status)
        writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(fault.body), fault.body))
        await writer.drain()
        return
    from_server, to_server = await asyncio.open_connection(host, port, limit=2**20)
    try:
        if line.google:
            head = _in_amazons_words(head)
        # The client signed the line's address, so the Host header stays as it is.
        to_server.write(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + body)
        await to_server.drain()
        answer = await from_server.readuntil(b"\r\n\r\n")
        if fault.swallow:
            return
        writer.write(answer)
        left = 2**40 if fault.cut_after is None else fault.cut_after
        while left > 0 and (data := await from_server.read(min(65536, left))):
            writer.write(data)
            await writer.drain()
            left -= len(data)
    finally:
        to_server.transport.abort()


def _in_amazons_words(head: bytes) -> bytes:
    request, rest = head.split(b"\r\n", 1)
    path, mark, query = request.partition(b"?")
    plain = re.sub(rb"%(2D|2E|2F|3D|5F)", lambda code: bytes([int(code[1], 16)]), path)
    anonymous = re.sub(rb"(?i)authorization: [^\r]*\r\n", b"", rest)
    return plain + mark + query + b"\r\n" + _AS_AMAZON + b"\r\n" + anonymous
