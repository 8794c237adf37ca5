"""Waybill as a contestant. Its worker is the product's own program, `python -m waybill_worker`, with its defaults."""

from __future__ import annotations

import os

import asyncpg
import uvloop

from benchmarks import program
from benchmarks.handlers import NOOP, PICK_UP, TEN_MS
from waybill.db.migrations import upgrade
from waybill_engine import NewJob, enqueue, enqueue_many

_BATCH = 5000


async def prepare() -> None:
    await upgrade(program.URL)


async def fill(jobs: int) -> None:
    connection = await asyncpg.connect(program.URL)
    kind = TEN_MS if os.environ.get("BENCH_KIND") == TEN_MS.name else NOOP
    for start in range(0, jobs, _BATCH):
        await enqueue_many(connection, [NewJob(kind, "bench") for _ in range(min(_BATCH, jobs - start))])


async def feed() -> None:
    connection = await asyncpg.connect(program.URL)
    await program.feed(
        connection.execute, lambda sample: enqueue(connection, NewJob(PICK_UP, "bench", {"sample": sample}))
    )


if __name__ == "__main__":
    program.main(uvloop.run, prepare=prepare, fill=fill, feed=feed)
