"""Measures the speed and the memory of a large upload, beside a bare sink that reads the same bytes.

The API checks, hashes, writes and flushes the bytes; the sink drops them.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import wire
from benchmarks.arena import ContestantFailed
from benchmarks.options import Options
from benchmarks.processor import milliseconds_of
from benchmarks.services import Service

SIZE = 50 * 2**20
_TURNS = 4
"""Turns of each server in a round."""


@dataclass
class Uploads:
    """Megabytes per second of every turn, and the most megabytes by which the API's process grew."""

    ours: list[float] = field(default_factory=list)
    sink: list[float] = field(default_factory=list)
    written: list[float] = field(default_factory=list)
    """The disk's own speed: a plain loop writes and flushes the same bytes."""
    growth: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    """Milliseconds of the API's processor time."""
    processor_sink: list[float] = field(default_factory=list)


async def measure(options: Options, api: Service, sink: Service, key: Mapping[str, str], home: Path) -> Uploads:
    found = Uploads()
    before = _resident(api.pid, "VmRSS")
    for number in range(options.rounds * _TURNS):
        options.say(f"convert: {SIZE // 2**20} MB, turn {number + 1}")
        media_type, body = wire.form(_document())
        for address, service, rates, spent in (
            ("/api/upload", api, found.ours, found.processor),
            ("/", sink, found.sink, found.processor_sink),
        ):
            head = wire.post(address, media_type, b"", {**key, "Content-Length": str(len(body))})
            _forget_peak(service.pid)
            used = milliseconds_of(service.pid)
            rates.append(SIZE / 1e6 / await asyncio.to_thread(_send, service.port, head, body))
            spent.append(milliseconds_of(service.pid) - used)
            if service is api:
                found.growth.append(_resident(api.pid, "VmHWM") - before)
        found.written.append(SIZE / 1e6 / await asyncio.to_thread(_write, home / "written", body))
    return found


def _document() -> bytes:
    """A different document each time, because the API recognises one that it already has."""
    random = os.urandom(2**20)
    return (b"%PDF-1.7\n" + random * (SIZE // 2**20))[:SIZE]


def _send(port: int, head: bytes, body: bytes) -> float:
    """Seconds from the first byte sent to the answer. A plain socket in a thread is the fastest client here."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        started = time.perf_counter()
        connection.sendall(head)
        connection.sendall(body)
        answer = connection.recv(65536)
        took = time.perf_counter() - started
    if not answer.startswith(b"HTTP/1.1 201"):
        raise ContestantFailed(f"The upload was refused: {answer[:500].decode(errors='replace')}")
    return took


def _write(path: Path, body: bytes) -> float:
    started = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for at in range(0, len(body), 2**20):
            file.write(body[at : at + 2**20])
        os.fsync(file.fileno())
    took = time.perf_counter() - started
    path.unlink()
    return took


def _forget_peak(pid: int) -> None:
    """Reset the kernel's record of the highest use, so that it covers every peak from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _resident(pid: int, what: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1000
    raise ContestantFailed(f"There is no {what} here.")
