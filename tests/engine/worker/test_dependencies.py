"""What runs meet of the things they lean on reaches the breaker: every failure, every probe's end, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.breakers import CONVERTER, POLICY, breaker_events, claim_gated, converter_worker, fail, standing, state_of
from support.clock import Clock
from support.engine import events, one_job, row, some_jobs, state
from support.handlers import CONVERT
from support.outside import outside
from support.waiting import eventually
from support.workers import all_ended
from waybill.config import WorkerSettings
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import DocumentFault, GatewayUnavailable
from waybill_engine import JobKind, Lease, State
from waybill_engine.context import JobContext
from waybill_engine.registry import Handler
from waybill_engine.rescue import rescue_worker
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.dependencies import Dependencies
from waybill_engine.worker.process_pool import BlockingPool
from waybill_engine.worker.slots import Bench
from waybill_engine.worker.worker import Worker
from worker.conftest import StartWorker

Work = Callable[[dict[str, Any], JobContext], Awaitable[None]]


async def well(payload: dict[str, Any], job: JobContext) -> None:
    pass


async def well_and_says_so(payload: dict[str, Any], job: JobContext) -> None:
    async with job.complete():
        pass


async def let_down(payload: dict[str, Any], job: JobContext) -> None:
    raise GatewayUnavailable()


async def let_down_politely(payload: dict[str, Any], job: JobContext) -> None:
    raise GatewayUnavailable(retry_after=60)


async def unreadable(payload: dict[str, Any], job: JobContext) -> None:
    raise DocumentFault()


async def mistaken(payload: dict[str, Any], job: JobContext) -> None:
    raise ValueError("surprise")


@asynccontextmanager
async def bench_of(
    db: Database, folder: Path, worker_id: Any, work: Work, kind: JobKind = CONVERT
) -> AsyncIterator[Bench]:
    """A worker's bench, without the loops that would claim for it."""
    health = DatabaseHealth()
    dependencies = Dependencies(db, health, POLICY)
    handlers = {kind.name: Handler(kind, work)}
    bench = Bench(worker_id, db, health, outside(folder), BlockingPool(1), handlers, 50, dependencies)
    loops = [asyncio.create_task(bench.completions.run()), asyncio.create_task(dependencies.run())]
    yield bench
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)


async def run(db: Database, folder: Path, worker_id: Any, leases: list[Lease], work: Work) -> None:
    async with bench_of(db, folder, worker_id, work) as bench:
        bench.take(leases)
        await bench.emptied()


async def probes(connection: Connection, clock: Clock) -> tuple[Any, list[Lease]]:
    """Two probes of a breaker that has just half-opened, and the worker that holds them."""
    worker = await converter_worker(connection)
    await some_jobs(connection, 2, CONVERT)
    await fail(connection)
    await clock.forward(31)
    leases = await claim_gated(connection, worker)
    assert len(leases) == 2
    return worker.id, leases


@pytest.mark.parametrize("work", [well, well_and_says_so])
async def test_probes_that_succeed_close_the_breaker(
    db: Database, connection: Connection, clock: Clock, tmp_path: Path, work: Work
) -> None:
    worker_id, leases = await probes(connection, clock)
    await run(db, tmp_path, worker_id, leases, work)
    assert [await state(connection, lease.id) for lease in leases] == [State.SUCCEEDED, State.SUCCEEDED]
    assert await breaker_events(connection) == ["opened", "half_opened", "closed"]


async def test_a_probe_that_is_let_down_opens_it_for_longer_and_costs_no_attempt(
    db: Database, connection: Connection, clock: Clock, tmp_path: Path
) -> None:
    worker_id, leases = await probes(connection, clock)
    await run(db, tmp_path, worker_id, leases, let_down)
    assert await breaker_events(connection) == ["opened", "half_opened", "reopened"]
    breaker = await standing(connection)
    assert breaker["open_seconds"] == 60
    assert "GW_5XX" in breaker["reason"]
    for lease in leases:
        job = await row(connection, lease.id)
        assert (job["state"], job["attempts"]) == ("scheduled", 0)
        assert job["run_at"] > breaker["open_until"], "others find out first, the next time"
        assert await events(connection, lease.id) == ["postponed"]


@pytest.mark.parametrize(
    ("work", "event"),
    [(unreadable, "failed"), (mistaken, "retry_scheduled"), (let_down_politely, "postponed")],
)
async def test_a_probe_that_ends_otherwise_says_nothing_about_the_dependency(
    db: Database, connection: Connection, clock: Clock, tmp_path: Path, work: Work, event: str
) -> None:
    worker_id, leases = await probes(connection, clock)
    await run(db, tmp_path, worker_id, leases, work)
    assert await breaker_events(connection) == ["opened", "half_opened"]
    assert (await standing(connection))["successes"] == 0
    assert await events(connection, leases[0].id) == [event]


@pytest.mark.parametrize("work", [well, well_and_says_so, let_down])
async def test_a_probe_that_lost_its_lease_has_no_say(
    db: Database, connection: Connection, clock: Clock, tmp_path: Path, work: Work
) -> None:
    worker_id, leases = await probes(connection, clock)
    await rescue_worker(connection, worker_id)
    await run(db, tmp_path, worker_id, leases, work)
    assert await breaker_events(connection) == ["opened", "half_opened"]
    assert (await standing(connection))["successes"] == 0
    assert [await events(connection, lease.id) for lease in leases] == [["suspected"], ["suspected"]]


async def test_runs_that_are_let_down_open_the_breaker_and_the_rest_costs_nothing(
    db: Database, connection: Connection, tmp_path: Path
) -> None:
    worker = await converter_worker(connection)
    await some_jobs(connection, 20, CONVERT)
    leases = await claim_gated(connection, worker)
    async with bench_of(db, tmp_path, worker.id, let_down) as bench:
        bench.take(leases[:9])
        await bench.emptied()
        bench.take(leases[9:10])  # opens it, before or after its own end is written
        await eventually(lambda: _is_open(connection))
        bench.take(leases[10:])
        await bench.emptied()
    attempts = [(await row(connection, lease.id))["attempts"] for lease in leases]
    assert attempts[:9] + attempts[10:] == [1] * 9 + [0] * 10
    assert await breaker_events(connection) == ["opened"]


async def _is_open(connection: Connection) -> bool:
    return await state_of(connection) == "open"


async def test_successes_are_counted_too(db: Database, connection: Connection, tmp_path: Path) -> None:
    worker = await converter_worker(connection)
    await some_jobs(connection, 30, CONVERT)
    leases = await claim_gated(connection, worker)

    async def some_fail(payload: dict[str, Any], job: JobContext) -> None:
        if job.id in {lease.id for lease in leases[:9]}:
            raise GatewayUnavailable()
        if job.id in {lease.id for lease in leases[9:20]}:
            async with job.complete():
                pass

    async def counted() -> bool:
        rows = await connection.fetch("SELECT sum(calls) AS calls, sum(failures) AS failures FROM breaker_counts")
        return (rows[0]["calls"], rows[0]["failures"]) == (30, 9)

    async with bench_of(db, tmp_path, worker.id, some_fail) as bench:
        bench.take(leases)
        await eventually(counted)
    assert await state_of(connection) == "closed"


async def test_what_leans_on_nothing_is_not_counted(db: Database, connection: Connection, tmp_path: Path) -> None:
    alone = replace(CONVERT, dependency=None)
    worker = await converter_worker(connection)
    await some_jobs(connection, 20, alone)
    leases = await claim_gated(connection, worker)
    async with bench_of(db, tmp_path, worker.id, let_down, alone) as bench:
        bench.take(leases)
        await bench.emptied()
        await fail(connection, 1)  # what there is to flush has been flushed before this, or never
    assert await connection.fetchval("SELECT sum(calls) FROM breaker_counts") == 1
    assert await connection.fetchval("SELECT min(attempts) FROM jobs") == 1


async def test_counts_wait_for_a_database_that_is_away_but_not_for_ever(db: Database, connection: Connection) -> None:
    dependencies = Dependencies(db, DatabaseHealth(), replace(POLICY, window=-1.0))
    dependencies.note(CONVERTER, ok=False)
    old = asyncio.create_task(dependencies.run())
    fresh = Dependencies(db, DatabaseHealth(), POLICY)
    fresh.note("mail", ok=False)
    new = asyncio.create_task(fresh.run())

    async def flushed() -> bool:
        return bool(await connection.fetchval("SELECT count(*) FROM breaker_counts WHERE name = 'mail'"))

    await eventually(flushed)
    assert await connection.fetchval("SELECT count(*) FROM breaker_counts") == 1, "older than the window: dropped"
    for task in (old, new):
        task.cancel()
    await asyncio.gather(old, new, return_exceptions=True)


async def test_a_worker_that_stops_tells_what_it_counted_last(
    db: Database, connection: Connection, database_url: str, tmp_path: Path
) -> None:
    async def well_and_the_last(payload: dict[str, Any], job: JobContext) -> None:
        worker.stop()

    settings = WorkerSettings.model_validate({"database_url": database_url})
    worker = Worker(settings, db, outside(tmp_path), {CONVERT.name: Handler(CONVERT, well_and_the_last)})
    await one_job(connection, CONVERT)
    async with asyncio.timeout(60):
        await worker.run()
    assert await connection.fetchval("SELECT sum(calls) FROM breaker_counts") == 1


# Real processes


async def test_three_processes_that_see_it_fail_open_it_once(
    connection: Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    down = tmp_path / "down"
    down.touch()
    for _ in range(3):
        start_worker()
    jobs = await some_jobs(connection, 60, CONVERT, payload={"down": str(down)})
    await eventually(lambda: _is_open(connection))
    assert (await breaker_events(connection)).count("opened") == 1
    assert [await state(connection, job) for job in jobs].count(State.DEAD_LETTER) == 0


async def test_documents_at_fault_never_open_it(connection: Connection, start_worker: StartWorker) -> None:
    start_worker()
    await some_jobs(connection, 100, CONVERT, payload={"unreadable": True})
    good = await one_job(connection, CONVERT)
    await eventually(lambda: all_ended(connection))
    assert await state(connection, good) is State.SUCCEEDED

    async def counted() -> bool:
        return bool(await connection.fetchval("SELECT sum(calls) = 1 AND sum(failures) = 0 FROM breaker_counts"))

    await eventually(counted)
    assert await breaker_events(connection) == []


async def test_a_worker_says_what_its_kinds_lean_on(connection: Connection, start_worker: StartWorker) -> None:
    start_worker(worker_kinds="convert,noop")

    async def known() -> dict[str, str | None]:
        return {row["name"]: row["dependency"] for row in await connection.fetch("SELECT * FROM kinds")}

    assert await eventually(known) == {"convert": CONVERTER, "noop": None}
