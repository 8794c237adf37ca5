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
from support.engine import events, one_job, row, some_jobs, state, take_as
from support.engine import start_worker as start_engine_worker
from support.handlers import CONVERT
from support.patience import eventually
from support.workers import StartWorker, all_ended
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import DependencyFault, DocumentFault, GatewayUnavailable, GatewayUnreachable, StorageFull
from waybill.storage import LocalStorage
from waybill_engine import ClaimedJob, JobKind, State
from waybill_engine.breaker import register_kinds
from waybill_engine.breaker_control import trip
from waybill_engine.breaker_counts import CallCount, record
from waybill_engine.context import JobContext
from waybill_engine.registry import Handler
from waybill_engine.rescue import rescue_worker
from waybill_engine.settings import WorkerSettings
from waybill_engine.worker.clients import Clients
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.dependencies import Dependencies
from waybill_engine.worker.process_pool import BlockingPool
from waybill_engine.worker.slots import Slots
from waybill_engine.worker.worker import JobRunner

Work = Callable[[dict[str, Any], JobContext], Awaitable[None]]


async def well(payload: dict[str, Any], job: JobContext) -> None:
    pass


async def well_and_says_so(payload: dict[str, Any], job: JobContext) -> None:
    async with job.complete():
        pass


async def let_down(payload: dict[str, Any], job: JobContext) -> None:
    raise GatewayUnavailable(dependency=CONVERTER)


async def refused(payload: dict[str, Any], job: JobContext) -> None:
    raise GatewayUnreachable(dependency=CONVERTER)


async def let_down_politely(payload: dict[str, Any], job: JobContext) -> None:
    raise GatewayUnavailable(dependency=CONVERTER, retry_after=60)


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
    [(unreadable, "failed"), (mistaken, "retry_scheduled")],
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


async def test_a_probe_that_is_asked_to_wait_opens_it_again_for_no_longer_than_before(
    db: Database, connection: Connection, clock: Clock, tmp_path: Path
) -> None:
    worker_id, claimed_jobs = await probes(connection, clock)
    await run(db, tmp_path, worker_id, claimed_jobs, let_down_politely)
    assert await breaker_events(connection) == ["opened", "half_opened", "reopened"], "it is not well"
    breaker = await standing(connection)
    assert breaker["open_seconds"] == 60, "as long as it asked for; it was open for 30 s before"
    for claimed in claimed_jobs:
        assert await events(connection, claimed.id) == ["postponed"]
        assert (await row(connection, claimed.id))["attempts"] == 0


async def test_jobs_that_are_let_down_in_a_row_open_the_breaker_and_pay_nothing(
    db: Database, connection: Connection, tmp_path: Path
) -> None:
    worker = await converter_worker(connection)
    await some_jobs(connection, 20, CONVERT)
    claimed_jobs = await claim_gated(connection, worker)
    await record(connection, [CallCount(CONVERTER, 1000, 0)], POLICY)  # it was well until now
    async with slots_of(db, tmp_path, worker.id, let_down) as slots:
        slots.take(claimed_jobs[: POLICY.failures_in_a_row - 1])
        await slots.emptied()
        assert await state_of(connection) == "closed"
        slots.take(claimed_jobs[POLICY.failures_in_a_row - 1 : POLICY.failures_in_a_row])
        await eventually(lambda: _is_open(connection))
        slots.take(claimed_jobs[POLICY.failures_in_a_row :])
        await slots.emptied()
    assert await connection.fetchval("SELECT max(attempts) FROM jobs") == 0
    assert await breaker_events(connection) == ["opened"]
    assert (await standing(connection))["reason"] == "5 jobs in a row failed"


async def test_two_refused_connections_open_the_breaker_whatever_succeeded_before(
    db: Database, connection: Connection, tmp_path: Path
) -> None:
    worker = await converter_worker(connection)
    await some_jobs(connection, 3, CONVERT)
    claimed_jobs = await claim_gated(connection, worker)
    await record(connection, [CallCount(CONVERTER, 1000, 0)], POLICY)
    async with slots_of(db, tmp_path, worker.id, refused) as slots:
        slots.take(claimed_jobs[:1])
        await slots.emptied()
        assert await state_of(connection) == "closed"
        slots.take(claimed_jobs[1:2])
        await eventually(lambda: _is_open(connection))
        slots.take(claimed_jobs[2:])
        await slots.emptied()
    assert await connection.fetchval("SELECT max(attempts) FROM jobs") == 0
    assert (await standing(connection))["reason"] == "2 calls in a row could not reach it"


async def test_a_run_tells_only_of_the_dependencies_it_used(
    db: Database, connection: Connection, clock: Clock, tmp_path: Path
) -> None:
    """Both dependencies are half open. A run that used one of them closes that one's breaker and no other."""
    both = replace(CONVERT, dependencies=(CONVERTER, "archive"))
    kinds = {both.name: both.dependencies}
    await register_kinds(connection, kinds)
    worker = await start_engine_worker(connection, kinds=(both.name,))
    await some_jobs(connection, 2, both)
    for name in both.dependencies:
        await trip(connection, name, "why", 5)
    await clock.forward(6)
    claimed_jobs = await take_as(connection, worker.id, worker.queues, worker.kinds, 10, dependencies=kinds)
    assert [set(claimed.probes or ()) for claimed in claimed_jobs] == [{CONVERTER, "archive"}] * 2

    async def used_the_archive(payload: dict[str, Any], job: JobContext) -> None:
        job.used_only("archive")

    async with slots_of(db, tmp_path, worker.id, used_the_archive, both) as slots:
        slots.take(claimed_jobs)
        await slots.emptied()
    assert [await state_of(connection, name) for name in (CONVERTER, "archive")] == ["half_open", "closed"]


async def test_an_error_blames_the_dependency_that_it_names(
    db: Database, connection: Connection, tmp_path: Path
) -> None:
    both = replace(CONVERT, dependencies=(CONVERTER, "archive"))
    worker = await converter_worker(connection)
    jobs = await some_jobs(connection, 4, both)
    claimed_jobs = await claim_gated(connection, worker)
    errors = dict(
        zip(
            jobs,
            (
                GatewayUnavailable(dependency="archive"),
                GatewayUnavailable(),  # names `gateway`, on which this kind does not depend
                DependencyFault(),
                StorageFull(),
            ),
            strict=True,
        )
    )

    async def fails(payload: dict[str, Any], job: JobContext) -> None:
        raise errors[job.id]

    async def counted() -> dict[str, int]:
        rows = await connection.fetch("SELECT name, sum(failures) AS failures FROM breaker_counts GROUP BY name")
        return {row["name"]: row["failures"] for row in rows}

    async def both_counted() -> bool:
        return len(await counted()) == 2

    async with slots_of(db, tmp_path, worker.id, fails, both) as slots:
        slots.take(claimed_jobs)
        await slots.emptied()
        await eventually(both_counted)
    assert await counted() == {"archive": 1, CONVERTER: 1}
    assert [(await row(connection, job))["attempts"] for job in jobs] == [0, 1, 0, 1]


async def _is_open(connection: Connection) -> bool:
    return await state_of(connection) == "open"


async def test_successes_are_counted_too(db: Database, connection: Connection, tmp_path: Path) -> None:
    worker = await converter_worker(connection)
    await some_jobs(connection, 30, CONVERT)
    claimed_jobs = await claim_gated(connection, worker)

    async def some_fail(payload: dict[str, Any], job: JobContext) -> None:
        if job.id in {claimed.id for claimed in claimed_jobs[:9]}:
            raise GatewayUnavailable(dependency=CONVERTER)
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
    alone = replace(CONVERT, dependencies=())
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
    worker = JobRunner(settings, db, LocalStorage(tmp_path), {CONVERT.name: Handler(CONVERT, well_and_the_last)})
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

    async def known() -> dict[str, tuple[str | None, list[str]]]:
        rows = await connection.fetch("SELECT * FROM kinds")
        return {row["name"]: (row["dependency"], row["dependencies"]) for row in rows}

    async def all_known() -> bool:  # limits are recorded a moment before dependencies
        return await known() == {"convert": (CONVERTER, [CONVERTER]), "noop": (None, [])}

    await eventually(all_known)
