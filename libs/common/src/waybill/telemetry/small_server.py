"""A small HTTP server for numbers and probes, in a thread of its own.

It answers while the process's event loop stands still, which is when people look at its numbers. It understands GET and
HEAD, one request per connection, and nothing else. Requests and connections are bounded in size, number and time, so a
slow or hostile client delays nobody: neither the process nor the next scrape.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import structlog

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_LONGEST_HEAD = 8 * 1024
_HEAD_WITHIN = 5.0
_ANSWER_WITHIN = 10.0
_SENT_WITHIN = 15.0
"""Seconds for a client to send its request, for us to make the answer, and for the client to read it."""
_LINGER = 1.0
"""Seconds for which we wait for the client to hang up first."""
_MOST_CONNECTIONS = 32
_WORTH_PACKING = 1024


@dataclass(frozen=True, slots=True)
class SmallAnswer:
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Headers = Mapping[str, str]
"""The request's headers, with lower-case names."""
Respond = Callable[[Headers], Awaitable[SmallAnswer]]


class SmallServer:
    """Serves `routes`, by path, at a listening socket."""

    def __init__(self, routes: Mapping[str, Respond], listener: socket.socket, name: str) -> None:
        self._routes = routes
        self._listener = listener
        self._name = name
        self._loop = asyncio.SelectorEventLoop()
        self._stopping = asyncio.Event()
        self._connections: dict[asyncio.Task[None], bool] = {}
        """In the order in which they came, and whether each is being answered."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop serving; whoever is being answered is cut off."""
        with contextlib.suppress(RuntimeError):  # its loop has ended already
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(timeout=2)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except Exception:
            log.exception("small_server_failed", server=self._name)
        finally:
            self._loop.close()
            self._listener.close()

    async def _serve(self) -> None:
        start = asyncio.start_unix_server if self._listener.family == socket.AF_UNIX else asyncio.start_server
        async with await start(self._connected, sock=self._listener, limit=_LONGEST_HEAD):
            await self._stopping.wait()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - for the type checker
        self._make_room()
        self._connections[task] = False
        try:
            await self._exchange(reader, writer, task)
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass  # the client is gone or too slow, or we stop
        except Exception:
            log.exception("small_server_failed", server=self._name)
        finally:
            self._connections.pop(task, None)
            writer.transport.abort()

    def _make_room(self) -> None:
        """Cut off the oldest connection if there are too many, rather one that says nothing than one we answer.

        To refuse the newest would let silent clients keep out a liveness probe, and have the process killed.
        """
        if len(self._connections) >= _MOST_CONNECTIONS:
            idle = (one for one, answered in self._connections.items() if not answered)
            oldest = next(idle, None) or next(iter(self._connections))
            del self._connections[oldest]
            oldest.cancel()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> None:
        method = ""
        try:
            async with asyncio.timeout(_HEAD_WITHIN):
                head = await reader.readuntil(b"\r\n\r\n")
            self._connections[task] = True
            method, answer = await self._answer(head.decode("latin-1"))
        except asyncio.LimitOverrunError:
            answer = _plain(431)
        except asyncio.IncompleteReadError:
            return
        async with asyncio.timeout(_SENT_WITHIN):
            await _send(writer, answer, head_only=method == "HEAD")
        self._connections[task] = False
        async with asyncio.timeout(_LINGER):  # to close while bytes arrive would cut off the answer
            while await reader.read(65536):
                pass

    async def _answer(self, head: str) -> tuple[str, SmallAnswer]:
        first, *lines = head.split("\r\n")
        method, _, rest = first.partition(" ")
        target, _, version = rest.rpartition(" ")
        if not version.startswith("HTTP/1.") or not target.startswith("/"):
            return method, _plain(400)
        respond = self._routes.get(target.partition("?")[0])
        if respond is None:
            return method, _plain(404)
        if method not in ("GET", "HEAD"):
            return method, SmallAnswer(b"Method Not Allowed\n", status=405, headers={"Allow": "GET, HEAD"})
        named = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in named}
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                answer = await respond(headers)
        except TimeoutError:
            return method, _plain(503)
        except Exception:
            log.exception("small_server_failed", server=self._name, path=target.partition("?")[0])
            return method, _plain(500)
        return method, _packed(answer, headers.get("accept-encoding", ""))


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. OSError if the port is taken or the address is not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_MOST_CONNECTIONS)
    except BaseException:
        listener.close()
        raise
    return listener


def listen_at(path: Path) -> socket.socket:
    """The same at a Unix socket, which only our own user can reach."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(_MOST_CONNECTIONS)
    except BaseException:
        listener.close()
        raise
    return listener


def _plain(status: int) -> SmallAnswer:
    return SmallAnswer(f"{HTTPStatus(status).phrase}\n".encode(), status=status)


def _packed(answer: SmallAnswer, accepted: str) -> SmallAnswer:
    codings = dict(one.replace(" ", "").lower().partition(";")[::2] for one in accepted.split(","))
    if len(answer.body) < _WORTH_PACKING or codings.get("gzip", "q=0") in ("q=0", "q=0.0"):
        return answer
    headers = {**answer.headers, "Content-Encoding": "gzip", "Vary": "Accept, Accept-Encoding"}
    return SmallAnswer(gzip.compress(answer.body, 1), answer.content_type, answer.status, headers)


async def _send(writer: asyncio.StreamWriter, answer: SmallAnswer, *, head_only: bool) -> None:
    headers = {
        "Content-Type": answer.content_type,
        "Content-Length": str(len(answer.body)),
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        "Connection": "close",
        **answer.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n{lines}\r\n".encode())
    if not head_only:
        writer.write(answer.body)
    await writer.drain()
    writer.write_eof()
