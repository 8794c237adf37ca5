"""Measures documents per second of the gateway over HTTP, with one parsing process and with two, in the same rounds.

There is no peer. The target is that the parts that all documents share (HTTP, the spool, the pool) do not waste the
second core. The client sends prepared bytes, so that it needs as little processor time as possible.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import invoices, wire
from benchmarks.arena import Arena
from benchmarks.figures import paired_ratio, percentile
from benchmarks.options import Options
from benchmarks.report import Check, Section
from benchmarks.services import free_port, running

_PROCESSES = (1, 2)
_AT_ONCE = 4
"""Requests at a time. They are more than the processes, so that no process waits for the client."""
_DOCUMENTS = 60
_LINES = 510


@dataclass(frozen=True)
class Load:
    per_second: float
    milliseconds: list[float]
    """How long each document took, including its wait."""


@contextlib.asynccontextmanager
async def gateway(home: Path, processes: int) -> AsyncIterator[int]:
    """Run a gateway with `processes` parsing processes and yield its port."""
    port = free_port()
    settings = {
        "WAYBILL_GATEWAY_PORT": str(port),
        "WAYBILL_GATEWAY_PROCESSES": str(processes),
        "WAYBILL_GATEWAY_OPEN": "true",
        "WAYBILL_GATEWAY_QUEUE": str(2 * _AT_ONCE),
        "WAYBILL_LOG_LEVEL": "warning",
    }
    async with running("waybill_gateway", home / f"gateway-{processes}", port, settings):
        yield port


async def load(port: int, request: bytes, documents: int) -> Load:
    """Send `documents` documents, a few at a time, and time them from the first request to the last answer."""
    left = deque(range(documents))
    took: list[float] = []

    async def client() -> None:
        async with wire.connection(port) as connection:
            while left:
                left.popleft()
                started = time.perf_counter()
                await connection.ask(request)
                took.append((time.perf_counter() - started) * 1000)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as clients:
        for _ in range(_AT_ONCE):
            clients.create_task(client())
    return Load(documents / (time.perf_counter() - started), took)


async def measure(arena: Arena, options: Options) -> Section:
    document = invoices.printed(arena.home, _LINES)
    request = _request(document.file)
    found: dict[int, list[Load]] = {processes: [] for processes in _PROCESSES}
    async with contextlib.AsyncExitStack() as stack:
        # Both gateways run all the time and idle when they get no requests, so a round measures them back to back.
        ports = {processes: await stack.enter_async_context(gateway(arena.home, processes)) for processes in _PROCESSES}
        for port in ports.values():
            await load(port, request, 2 * _AT_ONCE)
        for number in range(options.rounds):
            for processes, port in ports.items():
                options.say(f"gateway: round {number + 1}, {processes} {'process' if processes == 1 else 'processes'}")
                found[processes].append(await load(port, request, _DOCUMENTS))
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
        notes=[] if cores > 1 else ["This machine has one core, so two processes cannot be faster than one."],
        numbers={"per_second": {str(processes): rate for processes, rate in rates.items()}, "at_once": _AT_ONCE},
    )


def _waits(loads: Sequence[Load]) -> tuple[str, str]:
    took = [milliseconds for one in loads for milliseconds in one.milliseconds]
    return f"{statistics.median(took):,.0f} ms", f"{percentile(took, 99):,.0f} ms"


def _request(document: Path) -> bytes:
    """The request, a form with the document and the mapping's name; the same bytes each time."""
    media_type, body = wire.form(document.read_bytes(), mapping=invoices.MAPPING)
    return wire.post("/process", media_type, body, {"Accept": "application/xml"})
