"""Whatever dies, and whenever: nothing is lost, effects happen once, and no innocent job is charged."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import asyncpg
import pytest

from support import handlers
from support.patience import eventually
from support.server import embedded
from support.workers import (
    StartWorker,
    all_ended,
    counts,
    effects_happened_once,
    enqueue_effects,
    started_runs,
)
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill_cli.local.postgres import EmbeddedPostgres
from waybill_engine import NewJob, enqueue, enqueue_many


@pytest.mark.heavy
async def test_four_processes_complete_twenty_thousand_jobs_once_each(
    connection: Connection, start_worker: StartWorker
) -> None:
    for _ in range(20):
        await enqueue_many(connection, [NewJob(handlers.NOOP, "acme") for _ in range(1000)])
    for _ in range(4):
        start_worker(worker_concurrency=20)

    await eventually(lambda: all_ended(connection), within=90, every=0.2)

    assert await counts(connection) == {"succeeded": 20_000}
    assert await connection.fetchval("SELECT count(*) FROM job_events WHERE event = 'succeeded'") == 20_000
    assert await connection.fetchval("SELECT max(lease_token) FROM jobs") == 1


@pytest.mark.parametrize(
    ("jobs", "kills"), [(500, 3), pytest.param(50_000, 100, marks=[pytest.mark.heavy, pytest.mark.timeout(1800)])]
)
async def test_workers_killed_again_and_again_lose_nothing_and_repeat_nothing(
    connection: Connection, start_worker: StartWorker, jobs: int, kills: int
) -> None:
    seed = random.randrange(1_000_000)
    print("seed", seed)
    chance = random.Random(seed)
    await enqueue_effects(connection, jobs, seconds=0.01)
    workers = [start_worker(worker_concurrency=4, worker_processes=1) for _ in range(3)]

    for _ in range(kills):
        at_start = await connection.fetchval("SELECT count(*) FROM jobs WHERE state = 'succeeded'")

        async def moved(at_start: int = at_start) -> bool:
            done = await connection.fetchval("SELECT count(*) FROM jobs WHERE state = 'succeeded'")
            return bool(done >= at_start + chance.randrange(1, 60) or done == jobs)

        await eventually(moved)
        victim = chance.randrange(len(workers))
        workers[victim].kill()
        workers[victim] = start_worker(worker_concurrency=4, worker_processes=1)

    await eventually(lambda: all_ended(connection), within=90 if jobs < 10_000 else 1200, every=0.1)
    await effects_happened_once(connection, jobs)


@pytest.fixture
def own_server() -> Iterator[EmbeddedPostgres]:
    with embedded() as server:
        yield server


@pytest.mark.parametrize("mode", [pytest.param("fast", marks=pytest.mark.heavy), "immediate"])
async def test_postgres_stopped_and_started_mid_run_costs_nobody_anything(
    own_server: EmbeddedPostgres, start_worker: StartWorker, mode: Literal["fast", "immediate"]
) -> None:
    url = own_server.create_database("waybill")
    await upgrade(url)
    async with connected(url) as connection:
        await connection.execute(handlers.EFFECTS)
        await enqueue_effects(connection, 600, seconds=0.02)
    for _ in range(2):
        start_worker(url, worker_concurrency=5)

    for target in (100, 300):
        async with connected(url) as connection:
            await eventually(lambda: at_least(connection, target), within=60)  # noqa: B023 - waited for right here
        own_server.stop(mode)
        await asyncio.sleep(2.5)  # an outage longer than the workers' leases of 2 s
        own_server.start()

    async with connected(url) as connection:
        await eventually(lambda: all_ended(connection), within=60, every=0.1)
        await effects_happened_once(connection, 600)
        assert await connection.fetchval("SELECT count(*) FROM jobs WHERE attempts > 0 OR crashes > 0") == 0
        assert await connection.fetchval("SELECT count(*) FROM workers WHERE state = 'gone'") == 0


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def at_least(connection: Connection, succeeded: int) -> bool:
    return bool(await connection.fetchval("SELECT count(*) >= $1 FROM jobs WHERE state = 'succeeded'", succeeded))


async def test_a_worker_frozen_past_its_lease_changes_nothing_when_it_goes_on(
    connection: Connection, start_worker: StartWorker, gate: Path, tmp_path: Path
) -> None:
    frozen = start_worker(worker_concurrency=1)
    job = await enqueue(connection, NewJob(handlers.PUBLISH, "acme", {"gate": str(gate)}))

    async def first_run() -> bool:
        return started_runs(gate) == [f"{job.id}-1"]

    await eventually(first_run)
    frozen.signal(signal.SIGSTOP)
    start_worker(worker_concurrency=1)

    async def second_run() -> bool:
        return started_runs(gate) == [f"{job.id}-1", f"{job.id}-2"]

    await eventually(second_run)
    # Both go on at the same moment: the stale one writes its progress, its file and its completion, too.
    (gate / "open").touch()
    await eventually(lambda: all_ended(connection))
    before = dict(await connection.fetchrow("SELECT * FROM jobs WHERE id = $1", job.id) or {})
    frozen.signal(signal.SIGCONT)

    async def started_over() -> bool:
        return "worker_started_over" in frozen.text

    await eventually(started_over)
    frozen.signal(signal.SIGTERM)
    assert await frozen.ended() == 0

    after = dict(await connection.fetchrow("SELECT * FROM jobs WHERE id = $1", job.id) or {})
    assert after == before
    assert (after["state"], after["lease_token"], after["crashes"]) == ("succeeded", 2, 1)
    artefact = await connection.fetchrow("SELECT * FROM job_artefacts WHERE job_id = $1", job.id)
    assert artefact is not None
    assert artefact["lease_token"] == 2
    stored = tmp_path / "home" / "storage" / artefact["storage_key"]
    assert stored.read_text() == "by token 2"
