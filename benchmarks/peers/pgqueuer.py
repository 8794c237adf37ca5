"""PGQueuer as a contestant, with asyncpg (the fastest driver by its own figures) on uvloop, like its own benchmark.

Its tables stay `durable`, the default: `balanced` and `volatile` would keep its history out of the write-ahead log, and
ours is in it. Its advice on autovacuum is followed. Without a concurrency limit it uses the faster of its two dequeue
statements.
"""

from __future__ import annotations

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks import program

_BATCH = 10_000


async def noop(job: Job) -> None:
    pass


async def pick_up(job: Job) -> None:
    program.handler_started(int(job.payload or b"0"))


async def prepare() -> None:
    tables = Queries(AsyncpgDriver(await asyncpg.connect(program.URL)))
    await tables.install()
    await tables.optimize_autovacuum()


async def fill(jobs: int) -> None:
    tables = Queries(AsyncpgDriver(await asyncpg.connect(program.URL)))
    for start in range(0, jobs, _BATCH):
        count = min(_BATCH, jobs - start)
        await tables.enqueue(["noop"] * count, [None] * count, [0] * count)


async def work() -> None:
    if program.SETTINGS["pool"]:
        pool = await asyncpg.create_pool(program.URL, min_size=4, max_size=10)
        manager = PgQueuer(AsyncpgPoolDriver(pool))
    else:
        manager = PgQueuer(AsyncpgDriver(await asyncpg.connect(program.URL)))
    manager.entrypoint("noop")(noop)
    manager.entrypoint("pick_up")(pick_up)
    await manager.run(batch_size=program.SETTINGS["batch_size"])


async def feed() -> None:
    connection = await asyncpg.connect(program.URL)
    tables = Queries(AsyncpgDriver(connection))
    await program.feed(connection.execute, lambda sample: tables.enqueue("pick_up", str(sample).encode(), 0))


if __name__ == "__main__":
    program.main(uvloop.run, prepare=prepare, fill=fill, work=work, feed=feed)
