"""Measures how many statements and how much memory an idle worker needs, and what 200 idle workers would cost.

Each worker has its own connections and does not affect the others, so twenty workers are measured instead of 200. The
cost of 200 is ten times the difference between twenty workers and none.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from urllib.parse import urlsplit

import asyncpg
import psutil

from benchmarks.arena import Arena
from benchmarks.contestants import WAYBILL_IDLE
from benchmarks.options import Options
from benchmarks.processor import nanoseconds_of_each
from benchmarks.report import Check, Section
from benchmarks.server_log import ServerLog

_STARTED = 20
_TIMES = 10
_ACTIVE = "SELECT count(*) >= $1 FROM workers WHERE state = 'active'"
_SETTLED_AFTER = 6.0
"""Seconds after which a worker has done everything that it does only at its start."""


async def alone(arena: Arena, seconds: float) -> tuple[float, float, dict[str, int]]:
    """Statements per second, resident megabytes, and the statements with their counts."""
    async with arena.database(WAYBILL_IDLE) as url:
        database = urlsplit(url).path.lstrip("/")
        connection = await asyncpg.connect(url)
        log = ServerLog(arena.server.log)
        await log.watch(connection, database)
        async with arena.worker(WAYBILL_IDLE, url) as worker:
            await worker.until(connection, _ACTIVE, 1)
            pid = (await connection.fetchval("SELECT pid FROM workers")) or worker.pid
            await connection.close()  # so that the log has none of its own queries
            await asyncio.sleep(_SETTLED_AFTER)
            log.restart()
            await asyncio.sleep(seconds)
            statements = Counter(statement.text[:100] for statement in log.statements(database))
            resident = psutil.Process(pid).memory_info().rss / 1e6
    return statements.total() / seconds, resident, dict(statements.most_common())


async def many(arena: Arena, seconds: float) -> tuple[float, float]:
    """The number of cores that Postgres uses with no worker, and with twenty."""
    async with arena.database(WAYBILL_IDLE) as url, contextlib.AsyncExitStack() as workers:
        await asyncio.sleep(_SETTLED_AFTER)  # until the checkpoint has written everything
        without = await _cores(arena.server.pid, seconds)
        connection = await asyncpg.connect(url)
        started = [await workers.enter_async_context(arena.worker(WAYBILL_IDLE, url)) for _ in range(_STARTED)]
        await started[-1].until(connection, _ACTIVE, _STARTED)
        await connection.close()
        await asyncio.sleep(_SETTLED_AFTER)
        return without, await _cores(arena.server.pid, seconds)


async def _cores(postmaster: int, seconds: float) -> float:
    before, started = nanoseconds_of_each(postmaster), time.perf_counter()
    await asyncio.sleep(seconds)
    after, took = nanoseconds_of_each(postmaster), time.perf_counter() - started
    return sum(after[pid] - before.get(pid, 0) for pid in after) / 1e9 / took


async def measure(arena: Arena, options: Options) -> Section:
    options.say(f"idle: one worker, {options.seconds:.0f} s")
    per_second, resident, statements = await alone(arena, options.seconds)
    options.say(f"idle: {_STARTED} workers, twice {options.seconds:.0f} s")
    without, with_them = await many(arena, options.seconds)
    cost = (with_them - without) * _TIMES
    return Section(
        title=f"Idle ({options.seconds:.0f} s)",
        heading=("", ""),
        rows=[
            ("statements per second of one worker", f"{per_second:.2f}"),
            ("resident memory of one worker", f"{resident:.0f} MB"),
            ("Postgres without a worker", f"{without:.2%} of a core"),
            (f"Postgres with {_STARTED} idle workers", f"{with_them:.2%} of a core"),
        ],
        checks=[
            Check.at_most("statements per second", per_second, 1.0, "{:.2f}"),
            Check.below("resident memory", resident, 96, "{:.0f} MB"),
            Check.below(f"{_STARTED * _TIMES} idle workers ({_STARTED} measured)", cost, 0.05, "{:.1%} of a core"),
        ],
        numbers={
            "seconds": options.seconds,
            "statements_per_second": per_second,
            "statements": statements,
            "resident_mb": resident,
            "postgres_cores_without": without,
            "postgres_cores_with_twenty": with_them,
            "postgres_cores_of_200": cost,
        },
    )
