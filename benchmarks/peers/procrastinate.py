"""Procrastinate as a contestant: compiled psycopg on uvloop, jobs deferred in bulk, with LISTEN.

It fetches and finishes one job per statement, so concurrency is its only setting here. Logging is off (its default
level without a configuration). It keeps finished jobs, which is its default and what Waybill does.
"""

from __future__ import annotations

import psycopg
import uvloop
from procrastinate import App, PsycopgConnector

from benchmarks import program

_BATCH = 5000


async def noop() -> None:
    pass


async def pick_up(sample: int) -> None:
    program.handler_started(sample)


_concurrency = program.SETTINGS.get("concurrency", 1)
app = App(connector=PsycopgConnector(conninfo=program.URL, min_size=2, max_size=_concurrency + 2))
_noop = app.task(name="noop")(noop)
_pick_up = app.task(name="pick_up")(pick_up)


async def prepare() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def fill(jobs: int) -> None:
    async with app.open_async():
        for start in range(0, jobs, _BATCH):
            await _noop.batch_defer_async(*({} for _ in range(min(_BATCH, jobs - start))))


async def work() -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=_concurrency)


async def feed() -> None:
    connection = await psycopg.AsyncConnection.connect(program.URL, autocommit=True)
    defer = _pick_up.configure(connection=connection).defer_async
    async with app.open_async():
        await program.feed(connection.execute, lambda sample: defer(sample=sample))


if __name__ == "__main__":
    program.main(uvloop.run, prepare=prepare, fill=fill, work=work, feed=feed)
