"""Every failure of a dependency and every probe's end reaches the breaker, and nothing else does."""

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
from support.patience import eventually
from support.workers import StartWorker, all_ended
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import DocumentFault, GatewayUnavailable
from waybill.storage import LocalStorage
from waybill_engine import ClaimedJob, JobKind, State
from waybill_engine.context import JobContext
from waybill_engine.registry import Handler
from waybill_engine.rescue import rescue_worker
from waybill_engine.settings import WorkerSettings
from waybill_engine.worker.clients import Clients
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.dependencies import Dependencies
from waybill_engine.worker.process_pool import BlockingPool
from waybill_engine.worker.slots import Slots
from waybill_engine.worker.worker import Worker

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
async def slots_of(
    db: Database, folder: Path, worker_id: Any, work: Work, kind: JobKind = CONVERT
) -> AsyncIterator[Slots]:
    """A worker's slots, without the loops that would claim for it."""
    health = DatabaseHealth()
    dependencies = Dependencies(db, health, POLICY)
    handlers = {kind.name: Handler(kind, work)}
    slots = Slots(worker_id, db, health, LocalStorage(folder), Clients(), BlockingPool(1), handlers, 50, dependencies)
    loops = [asyncio.create_task(slots.completer.run()), asyncio.create_task(dependencies.run())]
    yield slots
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)


async def run(db: Database, folder: Path, worker_id: Any, claimed_jobs: list[ClaimedJob], work: Work) -> None:
    async with slots_of(db, folder, worker_id, work) as slots:
        slots.take(claimed_jobs)
        await slots.emptied()


async def probes(connection: Connection, clock: Clock) -> tuple[Any, list[ClaimedJob]]:
    """Two probes of a breaker that has just half-opened, and the worker that runs them."""
    worker = await converter_worker(connection)
    await some_jobs(connection, 2, CONVERT)
    await fail(connection)
    await clock.forward(31)
    claimed_jobs = await claim_gated(connection, worker)
    assert len(claimed_jobs) == 2
    return worker.id, claimed_jobs


@pytest.mark.parametrize("work", [well, well_and_says_so])
async def test_probes_that_succeed_close_the_breaker(
    db: Database, connection: Connection, clock: Clock, tmp_path: Path, work: Work
) -> None:
    worker_id, claimed_jobs = await probes(connection, clock)
    await run(db, tmp_path, worker_id, claimed_jobs, work)
    assert [await state(connection, claimed.id) for claimed in claimed_jobs] == [State.SUCCEEDED, State.SUCCEEDED]
    assert await breaker_events(connection) == ["opened", "half_opened", "closed"]


async def test_a_probe_that_is_let_down_opens_it_for_longer_and_costs_no_attempt(
    db: Database, connection: Connection, clock: Clock, tmp_path: Path
) -> None:
    worker_id, claimed_jobs = await probes(connection, clock)
    await run(db, tmp_path, worker_id, claimed_jobs, let_down)
    assert await breaker_events(connection) == ["opened", "half_opened", "reopened"]
    breaker = await standing(connection)
    assert breaker["open_seconds"] == 60
    assert "GW_5XX" in breaker["reason"]
    for claimed in claimed_jobs:
        job = await row(connection, claimed.id)
        assert (job["state"], job["attempts"]) == ("scheduled", 0)
        assert job["run_at"] > breaker["open_until"], "others find out first, the next time"
        assert await events(connection, claimed.id) == ["postponed"]


@pytest.mark.parametrize(
    ("work", "event"),
    [(unreadable, "failed"), (mistaken, "retry_scheduled"), (let_down_politely, "postponed")],
)
async def test_a_probe_that_ends_otherwise_says_nothing_about_the_dependency(
    db: Database, connection: Connection, clock: Clock, tmp_path: Path, work: Work, event: str
) -> None:
    worker_id, claimed_jobs = await probes(connection, clock)
    await run(db, tmp_path, worker_id, claimed_jobs, work)
    assert await breaker_events(connection) == ["opened", "half_opened"]
    assert (await standing(connection))["successes"] == 0
    assert await events(connection, claimed_jobs[0].id) == [event]


@pytest.mark.parametrize("work", [well, well_and_says_so, let_down])
async def test_a_probe_that_lost_its_lease_has_no_say(
    db: Database, connection: Connection, clock: Clock, tmp_path: Path, work: Work
) -> None:
    worker_id, claimed_jobs = await probes(connection, clock)
    await rescue_worker(connection, worker_id)
    await run(db, tmp_path, worker_id, claimed_jobs, work)
    assert await breaker_events(connection) == ["opened", "half_opened"]
    assert (await standing(connection))["successes"] == 0
    assert [await events(connection, claimed.id) for claimed in claimed_jobs] == [["suspected"], ["suspected"]]


async def test_runs_that_are_let_down_open_the_breaker_and_the_rest_costs_nothing(
    db: Database, connection: Connection, tmp_path: Path
) -> None:
    worker = await converter_worker(connection)
    await some_jobs(connection, 20, CONVERT)
    claimed_jobs = await claim_gated(connection, worker)
    async with slots_of(db, tmp_path, worker.id, let_down) as slots:
        slots.take(claimed_jobs[:9])
        await slots.emptied()
        slots.take(claimed_jobs[9:10])  # opens it, before or after its own end is written
        await eventually(lambda: _is_open(connection))
        slots.take(claimed_jobs[10:])
        await slots.emptied()
    attempts = [(await row(connection, claimed.id))["attempts"] for claimed in claimed_jobs]
    assert attempts[:9] + attempts[10:] == [1] * 9 + [0] * 10
    assert await breaker_events(connection) == ["opened"]


async def _is_open(connection: Connection) -> bool:
    return await state_of(connection) == "open"


async def test_successes_are_counted_too(db: Database, connection: Connection, tmp_path: Path) -> None:
    worker = await converter_worker(connection)
    await some_jobs(connection, 30, CONVERT)
    claimed_jobs = await claim_gated(connection, worker)

    async def some_fail(payload: dict[str, Any], job: JobContext) -> None:
        if job.id in {claimed.id for claimed in claimed_jobs[:9]}:
            raise GatewayUnavailable()
        if job.id in {claimed.id for claimed in claimed_jobs[9:20]}:
            async with job.complete():
                pass

    async def counted() -> bool:
        rows = await connection.fetch("SELECT sum(calls) AS calls, sum(failures) AS failures FROM breaker_counts")
        return (rows[0]["calls"], rows[0]["failures"]) == (30, 9)

    async with slots_of(db, tmp_path, worker.id, some_fail) as slots:
        slots.take(claimed_jobs)
        await eventually(counted)
    assert await state_of(connection) == "closed"


async def test_what_leans_on_nothing_is_not_counted(db: Database, connection: Connection, tmp_path: Path) -> None:
    alone = replace(CONVERT, dependency=None)
    worker = await converter_worker(connection)
    await some_jobs(connection, 20, alone)
    claimed_jobs = await claim_gated(connection, worker)
    async with slots_of(db, tmp_path, worker.id, let_down, alone) as slots:
        slots.take(claimed_jobs)
        await slots.emptied()
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
    worker = Worker(settings, db, LocalStorage(tmp_path), {CONVERT.name: Handler(CONVERT, well_and_the_last)})
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
