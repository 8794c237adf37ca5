"""The gateway under load: documents per second over HTTP, with one parsing process and with two, in the same rounds.

Nobody is compared: what is asked is that the second core is not lost to anything that all documents share (the HTTP
side, the spool, the pool). The client sends ready-made bytes, so that it takes as little of the processor as it can.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import statistics
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import invoices
from benchmarks.arena import Arena, ContestantFailed, stop
from benchmarks.contestants import ROOT
from benchmarks.figures import paired_ratio, percentile
from benchmarks.options import Options
from benchmarks.report import Check, Section
from waybill_cli.local.tether import tethered

_PROCESSES = (1, 2)
_AT_ONCE = 4
"""Requests under way. More than processes, so that none ever waits for the client."""
_DOCUMENTS = 60
_READY_WITHIN = 60.0
_BOUNDARY = "benchmark-boundary"
_LINES = 510


@dataclass(frozen=True)
class Load:
    per_second: float
    milliseconds: list[float]
    """How long each document took, waiting included."""


@contextlib.asynccontextmanager
async def gateway(home: Path, processes: int) -> AsyncIterator[int]:
    """A gateway with so many parsing processes, and the port it listens on."""
    port = _free_port()
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(ROOT),
        "WAYBILL_HOME": str(home / f"gateway-{processes}"),
        "WAYBILL_GATEWAY_PORT": str(port),
        "WAYBILL_GATEWAY_PROCESSES": str(processes),
        "WAYBILL_GATEWAY_QUEUE": str(2 * _AT_ONCE),
        "WAYBILL_LOG_LEVEL": "warning",
    }
    said = home / "gateway.log"
    with said.open("ab") as words:
        process = await asyncio.create_subprocess_exec(
            *tethered((sys.executable, "-m", "waybill_gateway"), on_parent_death=signal.SIGKILL),
            cwd=home,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            start_new_session=True,
        )
    try:
        async with asyncio.timeout(_READY_WITHIN):
            while not await _is_ready(port):
                if process.returncode is not None:
                    raise ContestantFailed(f"The gateway did not start. It said:\n{said.read_text()[-3000:]}")
                await asyncio.sleep(0.05)
        yield port
    finally:
        await stop(process)


async def load(port: int, document: Path, documents: int) -> Load:
    """So many documents, a few at once, from the first sent to the last answered."""
    request = _request(document)
    left = deque(range(documents))
    took: list[float] = []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while left:
            left.popleft()
            started = time.perf_counter()
            writer.write(request)
            status, body = await _answer(reader)
            if status != 200:
                raise ContestantFailed(f"The gateway answered {status}: {body[:500].decode(errors='replace')}")
            took.append((time.perf_counter() - started) * 1000)
        writer.close()

    started = time.perf_counter()
    async with asyncio.TaskGroup() as clients:
        for _ in range(_AT_ONCE):
            clients.create_task(client())
    return Load(documents / (time.perf_counter() - started), took)


async def measure(arena: Arena, options: Options) -> Section:
    document = invoices.printed(arena.home, _LINES)
    found: dict[int, list[Load]] = {processes: [] for processes in _PROCESSES}
    async with contextlib.AsyncExitStack() as stack:
        # Both run all the time, and the one that is not asked sleeps: a round compares neighbours.
        ports = {processes: await stack.enter_async_context(gateway(arena.home, processes)) for processes in _PROCESSES}
        for port in ports.values():
            await load(port, document.file, 2 * _AT_ONCE)
        for number in range(options.rounds):
            for processes, port in ports.items():
                options.say(f"gateway: round {number + 1}, {processes} {'process' if processes == 1 else 'processes'}")
                found[processes].append(await load(port, document.file, _DOCUMENTS))
    return _section(document.lines, found)


def _section(lines: int, found: dict[int, list[Load]]) -> Section:
    rates = {processes: [one.per_second for one in loads] for processes, loads in found.items()}
    one, two = _PROCESSES
    cores = len(os.sched_getaffinity(0))
    return Section(
        title=f"The gateway, {lines}-line invoices to XML, {_AT_ONCE} at once",
        heading=("parsing processes", "per second", "median", "99 %"),
        rows=[
            (str(processes), f"{statistics.median(rates[processes]):.1f}", *_waits(loads))
            for processes, loads in found.items()
        ],
        checks=[Check.at_least("two processes, to one", paired_ratio(rates[two], rates[one]), 1.7)],
        notes=[] if cores > 1 else ["There is only one core: two processes cannot be faster than one."],
        numbers={"per_second": {str(processes): rate for processes, rate in rates.items()}, "at_once": _AT_ONCE},
    )


def _waits(loads: Sequence[Load]) -> tuple[str, str]:
    took = [milliseconds for one in loads for milliseconds in one.milliseconds]
    return f"{statistics.median(took):,.0f} ms", f"{percentile(took, 99):,.0f} ms"


def _request(document: Path) -> bytes:
    """The same bytes each time: a form with the document and the mapping's name."""
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="mapping"\r\n\r\n{invoices.MAPPING}\r\n'
    head += f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="invoice.pdf"\r\n'
    head += "Content-Type: application/pdf\r\n\r\n"
    body = head.encode() + document.read_bytes() + f"\r\n--{_BOUNDARY}--\r\n".encode()
    lines = (
        "POST /process HTTP/1.1",
        "Host: localhost",
        "Accept: application/xml",
        f"Content-Type: multipart/form-data; boundary={_BOUNDARY}",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of one answer on a connection that stays open."""
    status = int((await reader.readline()).split()[1])
    length: int | None = None
    while (line := await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower() == "content-length":
            length = int(value)
    if length is not None:
        return status, await reader.readexactly(length)
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return status, body


async def _is_ready(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    status, _ = await _answer(reader)
    writer.close()
    return status == 200


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
