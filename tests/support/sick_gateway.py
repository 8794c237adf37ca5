"""A server that behaves like a gateway in trouble: it refuses, stalls, breaks off or answers nonsense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class SickGateway:
    """The server's URL and the requests it received."""

    url: str
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    connections: int = 0


def answering(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> Answer:
    """Answer with this status, body and headers."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()

    return answer


async def breaking_off(writer: asyncio.StreamWriter) -> None:
    """Begin an answer and close the connection in the middle of it."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
    await writer.drain()
    writer.close()


async def stalling(_writer: asyncio.StreamWriter) -> None:
    """Never answer."""
    await asyncio.sleep(3600)


@asynccontextmanager
async def sick_gateway(answer: Answer, *, hasty: bool = False) -> AsyncIterator[SickGateway]:
    """Run a server that reads a request and then calls `answer`. A `hasty` one calls it after the headers."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gateway.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {
                    name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
                }
                if hasty:
                    await answer(writer)
                    return
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                gateway.requests.append((headers, body))
                await answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    gateway = SickGateway(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield gateway
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
