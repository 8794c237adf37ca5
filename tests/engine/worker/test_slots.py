"""What a worker holds, it holds fairly: it starts it, gives it back, or keeps its lease for it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from support import engine, handlers
from support import rude_handlers as rude
from support.outside import outside
from support.server import embedded
from support.waiting import eventually
from support.workers import all_ended, counts, started_runs
from waybill.db import Database
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill_engine import Lease, NewJob, enqueue, enqueue_many
from waybill_engine.breaker import BreakerPolicy
from waybill_engine.context import JobContext
from waybill_engine.control import cancel
from waybill_engine.fair_share import Shares
from waybill_engine.registry import Handler
from waybill_engine.worker.claimer import Claimer
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.dependencies import Dependencies
from waybill_engine.worker.process_pool import BlockingPool
from waybill_engine.worker.slots import Bench
from worker.conftest import StartWorker

BOTH = "support.handlers,support.rude_handlers"


async def held_ahead(connection: Connection, start_worker: StartWorker, gate: Path) -> list[object]:
    """A worker that has learned that jobs are tiny, holding some behind two that are not."""
    await enqueue_many(connection, [NewJob(handlers.NOOP, "acme") for _ in range(3000)])
    start_worker(worker_concurrency=2)
    await eventually(lambda: all_ended(connection))
    async with connection.transaction():
        await enqueue_many(connection, [NewJob(handlers.GATED, "acme", {"gate": str(gate)}) for _ in range(2)])
        behind = await enqueue_many(connection, [NewJob(handlers.NOOP, "acme") for _ in range(20)])

    async def two_started() -> bool:
        return len(started_runs(gate)) == 2

    await eventually(two_started)
    assert (await counts(connection)).get("running", 0) > 2, "nothing is held ahead: the test shows nothing"
    return [job.id for job in behind]


@pytest.mark.heavy
async def test_jobs_held_ahead_do_not_wait_behind_long_ones_while_others_are_idle(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    behind = await held_ahead(connection, start_worker, gate)
    start_worker(worker_concurrency=2)

    async def through() -> bool:
        return (await counts(connection))["succeeded"] == 3000 + len(behind)

    await eventually(through)


async def test_more_are_taken_while_half_of_the_stock_is_left(
    db: Database, connection: Connection, tmp_path: Path
) -> None:
    """Nobody writes ends here, which would be another reason to ask."""
    await enqueue_many(connection, [NewJob(handlers.NOOP, "acme") for _ in range(3000)])
    worker = await engine.start_worker(connection, kinds=["noop"])
    shares, health = Shares(), DatabaseHealth()
    await engine.refresh(connection, shares, ["default"], ["noop"])
    left: list[int] = []

    class Watched(Claimer):
        async def _claim(self, wanted: int) -> list[Lease]:
            left.append(len(bench.waiting))
            return await super()._claim(wanted)

    async def tiny(payload: dict[str, Any], job: JobContext) -> None:
        bench.typical = 1e-5  # however busy the machine is

    dependencies = Dependencies(db, health, BreakerPolicy())
    kinds = {"noop": Handler(handlers.NOOP, tiny)}
    bench = Bench(worker.id, db, health, outside(tmp_path), BlockingPool(1), kinds, 2, dependencies)
    bench.typical = 1e-5
    claimer = Watched(db, health, bench, shares, BreakerPolicy(), poll_interval=60.0)
    bench.on_room = claimer.wake
    claiming = asyncio.create_task(claimer.run())

    async def all_ran() -> bool:
        return len(bench.completions) == 3000

    await eventually(all_ran)
    claimer.stop()
    await claiming
    assert left[0] == 0
    assert left[1] > 500


async def test_a_job_held_ahead_can_be_cancelled(connection: Connection, start_worker: StartWorker, gate: Path) -> None:
    behind = await held_ahead(connection, start_worker, gate)
    await cancel(connection, behind[0])  # type: ignore[arg-type]

    async def cancelled() -> bool:
        return bool(await connection.fetchval("SELECT state = 'cancelled' FROM jobs WHERE id = $1", behind[0]))

    await eventually(cancelled)


async def test_a_worker_killed_while_it_drains_costs_its_job_nothing(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    """Kubernetes does this when the grace period is over, or the node goes: an eviction costs no attempt."""
    worker = start_worker(worker_concurrency=1, shutdown_grace=60)
    job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))

    async def started() -> bool:
        return bool(started_runs(gate))

    await eventually(started)
    worker.signal(signal.SIGTERM)

    async def draining() -> bool:
        return bool(await connection.fetchval("SELECT EXISTS (SELECT FROM workers WHERE state = 'draining')"))

    await eventually(draining)
    worker.kill()
    (gate / "open").touch()
    start_worker()
    await eventually(lambda: all_ended(connection))
    row = await connection.fetchrow("SELECT state, attempts, crashes FROM jobs WHERE id = $1", job.id)
    assert row is not None
    assert tuple(row) == ("succeeded", 0, 0)


async def test_a_worker_that_fails_leaves_even_with_a_handler_that_ignores_it(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    worker = start_worker(worker_handlers=BOTH, shutdown_grace=0)
    await enqueue(connection, NewJob(rude.BRITTLE, "acme", {"gate": str(gate)}))

    async def started() -> bool:
        return bool(started_runs(gate))

    await eventually(started)
    # Something no loop expects: it ends the worker.
    await connection.execute("ALTER TABLE workers RENAME COLUMN last_seen_at TO seen_at")
    assert await worker.ended(45) == 1


async def test_ends_that_wait_for_a_lock_do_not_starve_the_heartbeat(
    connection: Connection, start_worker: StartWorker, database_url: str, gate: Path
) -> None:
    start_worker(worker_handlers=BOTH)
    jobs = await enqueue_many(connection, [NewJob(rude.LOCKED, "acme", {"gate": str(gate)}) for _ in range(8)])

    async def all_started() -> bool:
        return len(started_runs(gate)) == 8

    await eventually(all_started)
    other = await asyncpg.connect(database_url)
    async with other.transaction():
        # Somebody looks at these jobs in a transaction, and goes to lunch.
        await other.execute("SELECT FROM jobs WHERE id = ANY ($1) FOR UPDATE", [job.id for job in jobs])
        (gate / "open").touch()
        await asyncio.sleep(1)
        expires = "SELECT max(lease_expires_at) FROM workers"
        before = await connection.fetchval(expires)
        await asyncio.sleep(3)
        after = await connection.fetchval(expires)
    await other.close()
    assert after > before


@pytest.mark.heavy
@pytest.mark.parametrize("jobs", [1, pytest.param(3, marks=pytest.mark.heavy)])
async def test_a_deploy_during_an_outage_costs_nobody_anything(
    start_worker: StartWorker, gate: Path, jobs: int
) -> None:
    with embedded() as server:
        url = server.create_database("waybill")
        await upgrade(url)
        connection = await asyncpg.connect(url)
        await connection.execute(handlers.EFFECTS)
        leaving = start_worker(url, shutdown_grace=1)
        await enqueue_many(connection, [NewJob(handlers.GATED, "acme", {"gate": str(gate)}) for _ in range(jobs)])

        async def all_started() -> bool:
            return len(started_runs(gate)) == jobs

        await eventually(all_started)
        await connection.close()
        server.stop("fast")
        leaving.signal(signal.SIGTERM)
        assert await leaving.ended(60) == 0
        server.start()
        (gate / "open").touch()
        start_worker(url)
        connection = await asyncpg.connect(url)
        await eventually(lambda: all_ended(connection))
        assert await connection.fetchval("SELECT sum(attempts + crashes) FROM jobs") == 0
        await connection.close()
