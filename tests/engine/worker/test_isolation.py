"""Suspects of a crash run alone, so that only the guilty job is blamed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support import handlers
from support.patience import eventually
from support.workers import (
    SLOW,
    StartWorker,
    all_ended,
    started_runs,
    until_started,
)
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue, enqueue_many


async def test_a_job_that_kills_its_worker_ends_in_the_dead_letter_queue_and_its_neighbours_are_unharmed(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    payload = {"gate": str(gate)}
    neighbours = await enqueue_many(connection, [NewJob(handlers.GATED, "acme", payload) for _ in range(3)])
    killer = await enqueue(connection, NewJob(handlers.CRASH, "acme", payload))
    victim = start_worker(worker_concurrency=4)

    async def all_started() -> bool:
        return len(started_runs(gate)) == 4

    await eventually(all_started)
    (gate / "open").touch()
    await victim.ended()
    start_worker(worker_concurrency=4)

    await eventually(lambda: all_ended(connection), within=60)

    row = await connection.fetchrow("SELECT * FROM jobs WHERE id = $1", killer.id)
    assert row is not None
    assert (row["state"], row["error_code"], row["crashes"]) == ("dead_letter", "WORKER_CRASHED", 3)
    for job in neighbours:
        row = await connection.fetchrow("SELECT * FROM jobs WHERE id = $1", job.id)
        assert row is not None
        assert (row["state"], row["crashes"], row["attempts"]) == ("succeeded", 0, 0)
    assert await connection.fetchval("SELECT count(DISTINCT job_id) FROM effects") == 3
    assert await connection.fetchval("SELECT count(*) FROM effects") == 3


@pytest.mark.heavy
async def test_a_lone_job_that_kills_its_worker_is_blamed_at_once(
    connection: Connection, start_worker: StartWorker
) -> None:
    job = await enqueue(connection, NewJob(handlers.CRASH, "acme"))
    victim = start_worker(worker_concurrency=1)
    await victim.ended()
    start_worker(worker_concurrency=1)

    await eventually(lambda: all_ended(connection), within=60)

    row = await connection.fetchrow("SELECT * FROM jobs WHERE id = $1", job.id)
    assert row is not None
    assert (row["state"], row["error_code"], row["crashes"]) == ("dead_letter", "WORKER_CRASHED", 3)
    events = await connection.fetch("SELECT event FROM job_events WHERE job_id = $1 ORDER BY id", job.id)
    assert [row["event"] for row in events] == ["crashed", "crashed", "dead_lettered"]


async def test_a_suspect_that_dies_alone_is_judged_at_once(connection: Connection, start_worker: StartWorker) -> None:
    job = await enqueue(connection, NewJob(handlers.CRASH, "acme"))
    await connection.execute("UPDATE jobs SET isolate = true")
    start_worker(**SLOW)
    await eventually(lambda: all_ended(connection))
    row = await connection.fetchrow("SELECT state, error_code, crashes FROM jobs WHERE id = $1", job.id)
    assert row is not None
    assert tuple(row) == ("dead_letter", "WORKER_CRASHED", 3)


async def test_a_suspect_is_released_when_its_worker_stops(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await connection.execute("UPDATE jobs SET isolate = true")
    worker = start_worker(shutdown_grace=0, **SLOW)
    await until_started(gate, 1)
    worker.signal(signal.SIGTERM)
    assert await worker.ended(15) == 0
    row = await connection.fetchrow("SELECT state, isolate, attempts, crashes FROM jobs WHERE id = $1", job.id)
    assert row is not None
    assert tuple(row) == ("queued", True, 0, 0)
