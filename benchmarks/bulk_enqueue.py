"""Measures bulk enqueuing beside a raw COPY of the same rows into the same table."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass

import asyncpg

from benchmarks.arena import Arena
from benchmarks.contestants import WAYBILL
from benchmarks.figures import Spread, paired_ratio
from benchmarks.handlers import NOOP
from benchmarks.options import Options
from benchmarks.report import Check, Section
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue_many

_BATCH = 5000
"""Jobs per call. Both write everything in one transaction. COPY gets all rows in one call, which is fastest for it."""


@dataclass(frozen=True)
class Rates:
    """Rows per second."""

    made_in_loop: float
    """Enqueuing includes making the jobs and their ids, as for most callers."""
    made_beforehand: float
    """The jobs were made before the clock starts, like the rows for COPY."""
    copy: float


async def enqueue_and_copy(arena: Arena, jobs: int) -> Rates:
    async with arena.database(WAYBILL) as url:
        connection: Connection = await asyncpg.connect(url)
        made_in_loop = jobs / await _timed(connection, _enqueue(connection, _made(jobs)))
        await connection.execute("TRUNCATE jobs CASCADE")
        made_beforehand = jobs / await _timed(connection, _enqueue(connection, list(_made(jobs))))
        rows = [tuple(row) for row in await connection.fetch("SELECT * FROM jobs ORDER BY id")]
        columns = [row["attname"] for row in await connection.fetch(_COLUMNS)]
        await connection.execute("TRUNCATE jobs CASCADE")
        copying = connection.copy_records_to_table("jobs", records=rows, columns=columns)
        copy = jobs / await _timed(connection, copying)
        await connection.close()
    return Rates(made_in_loop, made_beforehand, copy)


async def _timed(connection: Connection, work: Awaitable[object]) -> float:
    await connection.execute("CHECKPOINT")
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


def _made(jobs: int) -> Iterator[list[NewJob]]:
    for start in range(0, jobs, _BATCH):
        yield [NewJob(NOOP, "bench") for _ in range(min(_BATCH, jobs - start))]


async def _enqueue(connection: Connection, batches: Iterable[list[NewJob]]) -> None:
    async with connection.transaction():
        for batch in batches:
            await enqueue_many(connection, batch)


_COLUMNS = """
SELECT attname FROM pg_attribute
 WHERE attrelid = 'jobs'::regclass AND attnum > 0 AND NOT attisdropped
 ORDER BY attnum
"""


async def measure(arena: Arena, options: Options) -> Section:
    await enqueue_and_copy(arena, min(options.jobs, 10_000))
    rates: list[Rates] = []
    for _ in range(options.rounds):
        options.say("enqueuing")
        rates.append(await enqueue_and_copy(arena, options.jobs))
    named = {
        "Waybill, jobs made beforehand": [one.made_beforehand for one in rates],
        "Waybill, jobs made in the loop": [one.made_in_loop for one in rates],
        "raw COPY, rows made beforehand": [one.copy for one in rates],
    }
    ratio = paired_ratio([one.made_beforehand for one in rates], [one.copy for one in rates])
    return Section(
        title=f"Enqueuing {options.jobs:,} jobs, {_BATCH:,} per call, one transaction, jobs/s",
        heading=("", "median", "lowest", "highest"),
        rows=[
            (name, f"{spread.median:,.0f}", f"{spread.low:,.0f}", f"{spread.high:,.0f}")
            for name, spread in ((name, Spread.of(found)) for name, found in named.items())
        ],
        checks=[Check.at_least("bulk enqueue to raw COPY into the same table", ratio, 0.6)],
        numbers={"jobs": options.jobs, "per_second": named, "enqueue_to_copy": ratio},
    )
