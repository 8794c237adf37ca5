"""Suspects of a crash run alone, so that only the guilty job is blamed."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from support import handlers
from support.clock import Clock
from support.engine import TTL
from support.engine import start_worker as start_a_worker
from support.patience import eventually
from support.workers import (
    SLOW,
    StartWorker,
    all_ended,
    started_runs,
    until_started,
)
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill_engine import NewJob, enqueue, enqueue_many
from waybill_engine.lease import WorkerInfo, register_isolating


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


async def test_a_few_processes_are_enough_for_the_whole_fleet(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    """After a node died every worker finds its suspects at the same moment."""
    await enqueue_many(connection, [NewJob(handlers.GATED, "acme", {"gate": str(gate)}) for _ in range(12)])
    await connection.execute("UPDATE jobs SET isolate = true")
    for _ in range(5):
        start_worker(rescue_interval=0.1, **SLOW)
    await until_started(gate, 2)

    async def everybody_has_looked() -> bool:
        looked = "SELECT count(*) FROM workers WHERE NOT isolating"
        return bool(await connection.fetchval(looked) == 5)

    await eventually(everybody_has_looked)
    (gate / "open").touch()
    await eventually(lambda: all_ended(connection), within=60)
    together = """
SELECT max(beside) FROM (
    SELECT count(*) AS beside
      FROM workers AS one JOIN workers AS other ON other.isolating AND other.started_at <= one.started_at
           AND COALESCE(other.stopped_at, 'infinity') > one.started_at
     WHERE one.isolating
     GROUP BY one.id) AS counted
"""
    assert await connection.fetchval(together) <= 2


async def test_a_place_for_suspects_is_free_again_when_its_process_is_gone(hot: Connection, clock: Clock) -> None:
    await start_a_worker(hot)

    def isolating() -> WorkerInfo:
        return WorkerInfo(new_id(), "i", "h", 1, "0", ["default"], ["work"], 1, isolating=True)

    assert [await register_isolating(hot, isolating(), TTL) for _ in range(3)] == [True, True, False]
    assert await register_isolating(hot, replace(isolating(), kinds=["letters"]), TTL), "they serve other jobs"
    await clock.forward(TTL + 1)
    assert await register_isolating(hot, isolating(), TTL)
