"""A proxy between a worker and Postgres that can lose answers or silently drop everything.

It knows just enough of Postgres's protocol to tell which statement an answer belongs to. The embedded server refuses
TLS, so the proxy can read everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit


class Network:
    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._lose: list[bytes] = []
        self._generation = 0
        self._swallowed = 0
        """Connections up to this generation are dead, although both ends believe they are open."""
        self.lost: list[bytes] = []
        self._refused: tuple[bytes, ...] = ()
        self._tasks: set[asyncio.Task[None]] = set()

    def lose_answer(self, statement: str) -> None:
        """Lose the answer to the next execution of this statement, and the connection with it."""
        self._lose.append(statement.encode())

    def swallow(self) -> None:
        """Drop everything on existing connections from now on, without closing them. New connections work."""
        self._swallowed = self._generation

    def cut(self) -> None:
        """Drop everything from now on, also on new connections: the server can be reached no more."""
        self._swallowed = sys.maxsize

    def mend(self) -> None:
        """Let new connections through again."""
        self._swallowed = self._generation

    def refuse(self, *statements: str) -> None:
        """End every connection on which one of these statements is sent."""
        self._refused = tuple(statement.encode() for statement in statements)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._generation += 1
        mine = self._generation
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        up_reader, up_writer = await asyncio.open_connection(self._host, self._port)
        losing = asyncio.Event()
        names: dict[bytes, bytes] = {}

        async def up() -> None:
            started = False
            buffer = b""
            while data := await reader.read(65536):
                if mine <= self._swallowed:
                    continue
                buffer += data
                while True:
                    head = 4 if not started else 5
                    if len(buffer) < head:
                        break
                    size = int.from_bytes(buffer[head - 4 : head], "big") + (head - 4)
                    if len(buffer) < size:
                        break
                    message, buffer = buffer[:size], buffer[size:]
                    if not started:
                        started = int.from_bytes(message[4:8], "big") == 196608
                    elif any(text in message for text in self._refused):
                        return
                    elif message[:1] == b"P":
                        name, text = message[5:].split(b"\0", 2)[:2]
                        names[name] = text
                    elif message[:1] == b"B":
                        name = message[5:].split(b"\0", 2)[1]
                        self._hit(names.get(name, b""), losing)
                    elif message[:1] == b"Q":
                        self._hit(message[5:], losing)
                    up_writer.write(message)
                await up_writer.drain()
            up_writer.close()

        async def down() -> None:
            while data := await up_reader.read(65536):
                if mine <= self._swallowed:
                    continue
                if losing.is_set():
                    if b"Z\0\0\0\5" not in data:  # the server is not ready again, so it has not committed
                        continue
                    break
                writer.write(data)
                await writer.drain()

        both = [asyncio.create_task(up()), asyncio.create_task(down())]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            for end in (writer, up_writer):
                with contextlib.suppress(Exception):
                    end.transport.abort()
            self._tasks.discard(task)

    def _hit(self, text: bytes, losing: asyncio.Event) -> None:
        for wanted in self._lose:
            if wanted in text:
                self._lose.remove(wanted)
                self.lost.append(wanted)
                losing.set()
                return

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()


@asynccontextmanager
async def network(database_url: str) -> AsyncIterator[tuple[Network, str]]:
    """The proxy, and the URL of the same database through it."""
    parts = urlsplit(database_url)
    assert parts.hostname is not None
    assert parts.port is not None
    between = Network(parts.hostname, parts.port)
    server = await asyncio.start_server(between.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    account = parts.netloc.rsplit("@", 1)[0]
    try:
        yield between, urlunsplit(parts._replace(netloc=f"{account}@127.0.0.1:{port}"))
    finally:
        server.close()
        between.stop()
