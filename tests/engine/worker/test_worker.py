"""A worker starts, serves what it knows and leaves without a loss, however it is made to leave."""

from __future__ import annotations

import signal
from pathlib import Path

import asyncpg
import pytest

from support import handlers
from support import rude_handlers as rude
from support.patience import eventually
from support.rude_handlers import BOTH
from support.server import embedded
from support.workers import StartWorker, all_ended, counts, effects_happened_once, started_runs, the_end
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill_engine import NewJob, enqueue, enqueue_many


async def test_ten_workers_run_a_hundred_jobs_once_each(connection: Connection, start_worker: StartWorker) -> None:
    for _ in range(10):
        start_worker(worker_concurrency=2)
    await enqueue_many(connection, [NewJob(handlers.EFFECT, "acme") for _ in range(100)])

    await eventually(lambda: all_ended(connection), within=60)

    assert await counts(connection) == {"succeeded": 100}
    assert await connection.fetchval("SELECT count(*) FROM effects") == 100
    assert await connection.fetchval("SELECT count(DISTINCT job_id) FROM effects") == 100
    assert await connection.fetchval("SELECT max(lease_token) FROM jobs") == 1


async def test_a_kind_the_old_worker_does_not_know_stays_for_the_new_one(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(worker_kinds="effect", poll_interval=0.1)
    new_kind = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    known = await enqueue_many(connection, [NewJob(handlers.EFFECT, "acme") for _ in range(20)])

    for job in known:
        await the_end(connection, job.id)
    assert await connection.fetchval("SELECT state FROM jobs WHERE id = $1", new_kind.id) == "queued"

    start_worker(worker_kinds="effect,noop")
    assert (await the_end(connection, new_kind.id))["state"] == "succeeded"


async def test_sigterm_under_load_charges_nobody_and_released_jobs_restart_elsewhere_within_a_second(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    leaving = start_worker(worker_concurrency=5, shutdown_grace=0)
    jobs = await enqueue_many(connection, [NewJob(handlers.GATED, "acme", {"gate": str(gate)}) for _ in range(5)])

    async def all_started() -> bool:
        return len(started_runs(gate)) == 5

    await eventually(all_started)
    start_worker(worker_concurrency=5, poll_interval=30)

    async def two_workers() -> bool:
        return bool(await connection.fetchval("SELECT count(*) = 2 FROM workers WHERE state = 'active'"))

    await eventually(two_workers)
    leaving.signal(signal.SIGTERM)
    assert await leaving.ended() == 0

    async def restarted() -> bool:
        return len(started_runs(gate)) == 10

    await eventually(restarted)
    (gate / "open").touch()
    await eventually(lambda: all_ended(connection))

    await effects_happened_once(connection, 5)
    assert await connection.fetchval("SELECT sum(attempts + crashes) FROM jobs") == 0
    # By the database's clock: from the release of each job to its next start.
    gaps = await connection.fetch(
        """
        SELECT extract(epoch FROM jobs.started_at - released.at) AS seconds
          FROM jobs JOIN job_events AS released ON released.job_id = jobs.id AND released.event = 'released'
        """
    )
    assert len(gaps) == len(jobs)
    assert max(gap["seconds"] for gap in gaps) < 1
    assert await connection.fetchval("SELECT count(*) FROM workers WHERE state = 'stopped'") == 1


async def test_a_graceful_stop_lets_running_jobs_finish(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    worker = start_worker(worker_concurrency=2)
    await enqueue_many(connection, [NewJob(handlers.GATED, "acme", {"gate": str(gate)}) for _ in range(3)])

    async def two_started() -> bool:
        return len(started_runs(gate)) == 2

    await eventually(two_started)
    worker.signal(signal.SIGTERM)

    async def draining() -> bool:
        return bool(await connection.fetchval("SELECT EXISTS (SELECT FROM workers WHERE state = 'draining')"))

    await eventually(draining)
    (gate / "open").touch()
    assert await worker.ended() == 0

    assert await counts(connection) == {"succeeded": 2, "queued": 1}


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
