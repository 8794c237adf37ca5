"""A job costs as much work of the database with eight workers as with one, and waits for none that is gone."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support import handlers
from support.engine import Connect
from support.patience import eventually
from support.workers import SLOW, StartWorker, the_end, until_started
from waybill.db import Database
from waybill.db.database import Connection
from waybill.storage import LocalStorage
from waybill_engine import NewJob, enqueue, enqueue_many
from waybill_engine.context import JobContext
from waybill_engine.registry import Handler, HandlerFunction
from waybill_engine.settings import WorkerSettings
from waybill_engine.worker.worker import JobRunner

_JOBS = 10
_HEAR = "SELECT count(*) FROM workers WHERE state = 'active' AND hears"


class CountingDatabase(Database):
    """Counts how often the engine borrows a connection, which it does for one transaction each time."""

    transactions = 0

    @asynccontextmanager
    async def hot(self, *, urgent: bool = False) -> AsyncIterator[Connection]:
        self.transactions += 1
        async with super().hot(urgent=urgent) as connection:
            yield connection


class Fleet:
    def __init__(self) -> None:
        self.databases: list[CountingDatabase] = []
        self.workers: list[JobRunner] = []

    @property
    def transactions(self) -> int:
        return sum(db.transactions for db in self.databases)

    async def quiet(self) -> None:
        """Wait until no worker is about to do anything: none has started a transaction for as long as a turn takes."""
        seen = -1
        while seen != self.transactions:
            seen = self.transactions
            await asyncio.sleep(0.5)


async def noop(payload: dict[str, Any], job: JobContext) -> None:
    pass


def _sleeper(seconds: float) -> HandlerFunction:
    async def sleep(payload: dict[str, Any], job: JobContext) -> None:
        await asyncio.sleep(seconds)

    return sleep


@asynccontextmanager
async def fleet(
    size: int, url: str, connection: Connection, folder: Path, *, concurrency: int = 10, takes: float = 0.0
) -> AsyncIterator[Fleet]:
    """Workers that know each other, and do nothing unless they hear of something."""
    settings = WorkerSettings.model_validate(
        {"database_url": url, "worker_concurrency": concurrency, **_QUIET},
    )
    handler = Handler(handlers.NOOP, noop if not takes else _sleeper(takes))
    started = Fleet()
    async with AsyncExitStack() as stack:
        for _ in range(size):
            db = CountingDatabase(settings.database_url)
            stack.push_async_callback(db.close)
            started.databases.append(db)
            worker = JobRunner(settings, db, LocalStorage(folder), {"noop": handler})
            started.workers.append(worker)
            stack.push_async_callback(_ended, worker, asyncio.create_task(worker.run()))

        async def all_hear() -> bool:
            return bool(await connection.fetchval(_HEAR) == size)

        await eventually(all_hear)
        await started.quiet()
        await connection.execute("SELECT pg_notify('waybill_control', 'look')")
        await started.quiet()
        yield started


async def _ended(worker: JobRunner, task: asyncio.Task[None]) -> None:
    worker.stop()
    await task


_QUIET = {
    "poll_interval": 600.0,
    "rescue_interval": 600.0,
    "sample_interval": 600.0,
    "lease_ttl": 600,
    "heartbeat_interval": 200.0,
}

Make = Callable[[], NewJob]


@pytest.mark.parametrize("size", [*(pytest.param(few, marks=pytest.mark.heavy) for few in (1, 4)), 8])
@pytest.mark.parametrize(
    "make",
    [lambda: NewJob(handlers.NOOP, "acme"), lambda: NewJob(handlers.NOOP, "acme", delay=0.05)],
    ids=["single", "scheduled"],
)
async def test_a_job_takes_at_most_four_transactions_whatever_the_number_of_workers(
    connection: Connection, database_url: str, tmp_path: Path, size: int, make: Make
) -> None:
    async with fleet(size, database_url, connection, tmp_path) as workers:
        before = workers.transactions
        for _ in range(_JOBS):
            job = await enqueue(connection, make())  # the first of its transactions
            await the_end(connection, job.id)
        await workers.quiet()
        each = 1 + (workers.transactions - before) / _JOBS
    assert 3 <= each <= 4


async def test_many_jobs_at_once_are_shared_by_all_workers(
    connection: Connection, database_url: str, tmp_path: Path
) -> None:
    async with fleet(4, database_url, connection, tmp_path):
        await enqueue_many(connection, [NewJob(handlers.NOOP, "acme") for _ in range(400)])

        async def ended() -> bool:
            return bool(await connection.fetchval("SELECT count(*) = 400 FROM jobs WHERE state = 'succeeded'"))

        await eventually(ended)
        shares = await connection.fetch("SELECT count(*) FROM job_events WHERE event = 'succeeded' GROUP BY worker_id")
    assert len(shares) > 1


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.heavy), 8])
async def test_a_job_among_many_tenants_takes_at_most_two_transactions_whatever_the_number_of_workers(
    connection: Connection, database_url: str, tmp_path: Path, size: int
) -> None:
    """Every worker knows every lane, and most of them are empty when it comes to them: others were faster."""
    async with fleet(size, database_url, connection, tmp_path, concurrency=2, takes=0.02) as workers:
        before = workers.transactions
        jobs = [NewJob(handlers.NOOP, f"tenant-{number}") for _ in range(2) for number in range(150)]
        await enqueue_many(connection, jobs)

        async def ended() -> bool:
            return bool(await connection.fetchval("SELECT count(*) = 300 FROM jobs WHERE state = 'succeeded'"))

        await eventually(ended)
        await workers.quiet()
        each = (workers.transactions - before) / len(jobs)
    assert each <= 2


async def test_a_job_does_not_wait_for_a_worker_that_is_gone(connect: Connect, start_worker: StartWorker) -> None:
    """Nobody has noticed its death: its lease lasts, and the others count on it."""
    connection = await connect()
    workers = [start_worker(poll_interval=60.0, **SLOW) for _ in range(2)]

    async def both() -> bool:
        return bool(await connection.fetchval(_HEAR) == 2)

    await eventually(both)
    await connection.execute("SELECT pg_notify('waybill_control', 'look')")
    for _ in range(3):
        job = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
        await the_end(connection, job.id)  # both have looked by now, or will do so while the others run
    workers[0].signal(signal.SIGSTOP)
    for _ in range(12):
        job = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
        row = await the_end(connection, job.id, within=30)
        assert row["state"] == "succeeded"


async def test_a_job_does_not_wait_for_a_worker_that_has_no_free_slot(
    connect: Connect, start_worker: StartWorker, gate: Path
) -> None:
    connection = await connect()
    busy = NewJob(handlers.GATED, "acme", {"gate": str(gate)})
    start_worker(poll_interval=60.0, worker_concurrency=1, **SLOW)
    await enqueue(connection, busy)
    await until_started(gate)
    start_worker(poll_interval=60.0, worker_concurrency=2, **SLOW)

    async def both() -> bool:
        return bool(await connection.fetchval(_HEAR) == 2)

    await eventually(both)
    await connection.execute("SELECT pg_notify('waybill_control', 'look')")
    for _ in range(12):
        job = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
        assert (await the_end(connection, job.id, within=30))["state"] == "succeeded"
    (gate / "open").touch()
