"""Measures batches of small text files, from the upload of the ZIP to the batch's summary, through real services.

The floor is a bare loop that reads the same files from a folder, hashes them and writes them again, one by one.
It runs twice: leaving it to the system when a file reaches the disk, and as durable as our storage. Each round runs all
three, so that a ratio compares what happened at the same time.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import shutil
import statistics
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import wire
from benchmarks.arena import Arena, ContestantFailed
from benchmarks.contestants import WAYBILL
from benchmarks.figures import paired_ratio
from benchmarks.options import Options
from benchmarks.product import Product, connected, key, product
from benchmarks.report import Check, Section
from waybill.db.database import Connection

MANY, FEW = 10_000, 100
_WITHIN = 600.0
_TENANT = "bench"

_ENDED = "SELECT status, counts ->> 'complete' FROM batches WHERE id = $1::text::uuid AND finished_at IS NOT NULL"


@dataclass
class Memory:
    """The most that a process has used, in MB."""

    worker: float
    api: float


async def measure(arena: Arena, options: Options) -> Section:
    found: dict[str, list[float]] = {"batch": [], "bare loop": [], "durable loop": []}
    memory: dict[int, Memory] = {}
    async with (
        arena.database(WAYBILL) as url,
        connected(url) as connection,
        product(url, arena.home / "batches", converting=True) as running,
    ):
        headers = await key(connection, _TENANT)
        for number in range(3):  # warm up: imports, connections, parsers
            await _batch(running, headers, connection, _files(FEW, number))
        memory[FEW] = _memory(running)
        for number in range(options.rounds):
            options.say(f"batches: round {number + 1}")
            files = _files(MANY, 10 + number)
            found["batch"].append(MANY / await _batch(running, headers, connection, files))
            folder = _unpacked(arena.home / "loop", files)
            found["bare loop"].append(MANY / _loop(folder, durable=False))
            found["durable loop"].append(MANY / _loop(folder, durable=True))
            await asyncio.to_thread(shutil.rmtree, folder)
        memory[MANY] = _memory(running)
    return _section(found, memory)


def _files(count: int, seed: int) -> dict[str, bytes]:
    """Notes of about a kilobyte. Those of another seed have other contents, or nothing would have to be worked."""
    line = "The quick brown fox jumps over the lazy dog."
    return {
        f"notes/{number % 100:02}/n{number:05}.txt": f"Note {number} of {seed}\n{line}\n".encode() * 16
        for number in range(count)
    }


def _zipped(files: Mapping[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return written.getvalue()


async def _batch(
    running: Product, headers: Mapping[str, str], connection: Connection, files: Mapping[str, bytes]
) -> float:
    """Seconds from the first byte of the upload to the summary."""
    media_type, body = wire.form(_zipped(files), name="bench")
    request = wire.post("/api/batches", media_type, body, headers)
    ended = asyncio.Event()
    await connection.add_listener("waybill_changes", lambda *_: ended.set())
    async with wire.connection(running.api.port) as client:
        started = time.perf_counter()
        batch = json.loads(await client.ask(request, expect=202))["batch"]["id"]
        async with asyncio.timeout(_WITHIN):
            while (row := await connection.fetchrow(_ENDED, batch)) is None:
                ended.clear()
                await asyncio.wait([asyncio.create_task(ended.wait())], timeout=0.1)
    took = time.perf_counter() - started
    await connection.reset()
    if tuple(row) != ("complete", str(len(files))):
        raise ContestantFailed(f"The batch ended as {tuple(row)}.")
    return took


def _unpacked(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def _loop(folder: Path, *, durable: bool) -> float:
    """Seconds to read, hash and write every file."""
    out = folder / ("durable" if durable else "bare")
    started = time.perf_counter()
    for path in sorted((folder / "in").rglob("*.txt")):
        content = path.read_bytes()
        target = out / path.relative_to(folder / "in").with_suffix(f".{hashlib.sha256(content).hexdigest()[:8]}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
    return time.perf_counter() - started


def _memory(running: Product) -> Memory:
    assert running.worker is not None
    return Memory(*(_peak(service.pid) for service in (running.worker, running.api)))


def _peak(pid: int) -> float:
    """Of the process and all that it has started."""
    pids, total = [pid], 0.0
    while pids:
        one = pids.pop()
        status = Path(f"/proc/{one}/status").read_text()
        total += int(status.split("VmHWM:")[1].split()[0]) / 1024
        pids += [int(child) for child in Path(f"/proc/{one}/task/{one}/children").read_text().split()]
    return total


def _section(found: Mapping[str, list[float]], memory: Mapping[int, Memory]) -> Section:
    few, many = memory[FEW], memory[MANY]
    return Section(
        title=f"A batch of {MANY:,} text files of 1 KB, from the upload to its summary",
        heading=("", "files per second", "lowest", "highest"),
        rows=[
            (name, f"{statistics.median(rates):,.0f}", f"{min(rates):,.0f}", f"{max(rates):,.0f}")
            for name, rates in found.items()
        ],
        checks=[
            Check.at_least("to the bare loop", paired_ratio(found["batch"], found["bare loop"]), 0.4),
            Check.at_least("to the durable loop", paired_ratio(found["batch"], found["durable loop"]), 0.4),
            Check.at_most(f"worker, {FEW} to {MANY:,} files", many.worker - few.worker, 32, "{:+.0f} MB"),
            Check.at_most(f"API, {FEW} to {MANY:,} files", many.api - few.api, 32, "{:+.0f} MB"),
        ],
        notes=["Our storage is durable: what it has stored survives a power cut. The bare loop's files need not."],
        numbers={**found, "memory": {str(size): vars(one) for size, one in memory.items()}},
    )
