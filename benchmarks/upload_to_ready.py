"""Measures upload to "Ready": one invoice of one page at a time, through API, worker and gateway, on an idle system.

A job counts as complete when the database says so; a notification wakes the benchmark, so that it does not slow the
product down by polling. A job counts as told when `/api/stream` has reported it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import statistics
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks import invoices, wire
from benchmarks.arena import ContestantFailed
from benchmarks.options import Options
from benchmarks.product import Product
from waybill.db.database import Connection

FEWEST = 30
_LINES = 12
_WITHIN = 30.0
_WARM_UP = 5

_STATUS = "SELECT status FROM conversions WHERE job_id = $1::text::uuid"
_TIMES = """
SELECT extract(epoch FROM created_at)::float8 AS created, extract(epoch FROM started_at)::float8 AS started,
       extract(epoch FROM finished_at)::float8 AS finished
  FROM jobs WHERE id = $1::text::uuid
"""


@dataclass
class Ready:
    """Milliseconds since the begin of the upload, of every document."""

    answered: list[float] = field(default_factory=list)
    claimed: list[float] = field(default_factory=list)
    finished: list[float] = field(default_factory=list)
    complete: list[float] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    gateway: dict[str, float] = field(default_factory=dict)
    """Medians from the gateway's log: receiving, waiting, parsing and its stages."""


class _News:
    """When the stream reported each job."""

    def __init__(self) -> None:
        self._complete: dict[str, asyncio.Future[float]] = {}

    def of(self, job: str) -> asyncio.Future[float]:
        return self._complete.setdefault(job, asyncio.get_running_loop().create_future())

    async def follow(self, port: int, key: Mapping[str, str]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        writer.write(wire.get("/api/stream", key))
        while line := await reader.readline():
            if line.startswith(b"data: "):
                now = time.perf_counter()
                for job in json.loads(line[6:])["jobs"]:
                    if job["status"] == "complete" and not (told := self.of(job["id"])).done():
                        told.set_result(now)
        raise ContestantFailed("The stream has ended.")


async def measure(
    options: Options, product: Product, key: Mapping[str, str], owner: str, connection: Connection
) -> Ready:
    found, documents = Ready(), max(FEWEST, options.samples // 5)
    changed = asyncio.Event()
    await connection.add_listener("waybill_changes", lambda *said: changed.set() if said[-1] == owner else None)
    dice = random.Random(7)
    async with _following(product.api.port, key) as news, wire.connection(product.api.port) as client:
        for number in range(_WARM_UP + documents):
            if number % 10 == 0:
                options.say(f"convert: upload to ready, {number} of {_WARM_UP + documents}")
            media_type, body = wire.form(invoices.one_page(number, _LINES), mapping=invoices.MAPPING)
            request = wire.post("/api/upload", media_type, body, key)
            await asyncio.sleep(dice.uniform(0.2, 0.4))  # until all work after the completion is done
            kept = found if number >= _WARM_UP else Ready()
            async with asyncio.timeout(_WITHIN):
                await _one(client, request, connection, changed, news, kept)
    found.gateway = _of_the_gateway(product)
    return found


async def _one(
    client: wire.Connection, request: bytes, connection: Connection, changed: asyncio.Event, news: _News, found: Ready
) -> None:
    changed.clear()
    clock, started = time.time(), time.perf_counter()
    job: str = json.loads(await client.ask(request, expect=201))["job"]["id"]
    answered = time.perf_counter()
    while (status := await connection.fetchval(_STATUS, job)) != "complete":
        if status in ("failed", "cancelled"):
            raise ContestantFailed(f"The invoice came out as {status}.")
        await changed.wait()
        changed.clear()
    complete = time.perf_counter()
    told = await news.of(job)
    times = await connection.fetchrow(_TIMES, job)
    assert times is not None
    found.answered.append((answered - started) * 1000)
    found.claimed.append((times["started"] - clock) * 1000)
    found.finished.append((times["finished"] - clock) * 1000)
    found.complete.append((complete - started) * 1000)
    found.told.append((told - started) * 1000)


@contextlib.asynccontextmanager
async def _following(port: int, key: Mapping[str, str]) -> AsyncIterator[_News]:
    news = _News()
    task = asyncio.create_task(news.follow(port, key))
    try:
        yield news
    finally:
        task.cancel()
        await asyncio.wait([task])


def _of_the_gateway(product: Product) -> dict[str, float]:
    assert product.gateway is not None
    lines = product.gateway.log.read_text().splitlines()
    notes: list[dict[str, Any]] = [json.loads(line) for line in lines if '"processed"' in line]
    found: dict[str, list[float]] = {}
    for note in notes[_WARM_UP:]:
        parts = {name: note[f"{name}_seconds"] for name in ("upload", "wait", "parse")} | note["stages"]
        for name, took in parts.items():
            found.setdefault(name, []).append(took * 1000)
    return {name: statistics.median(took) for name, took in found.items()}
