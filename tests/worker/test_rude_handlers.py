"""Whatever a handler does, its worker goes on, its job ends, and nobody else is hurt."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from support import handlers
from support import rude_handlers as rude
from support.waiting import eventually
from support.workers import all_ended, started_runs
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue, enqueue_many
from waybill_engine.control import cancel
from worker.conftest import StartWorker

BOTH = "support.handlers,support.rude_handlers"


async def the_end(connection: Connection, job_id: object, within: float = 60) -> dict[str, Any]:
    async def ended() -> dict[str, Any] | None:
        row = await connection.fetchrow(
            "SELECT * FROM jobs WHERE id = $1 AND state IN ('succeeded', 'failed', 'dead_letter', 'cancelled')", job_id
        )
        return dict(row) if row else None

    found = await eventually(ended, within=within)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "way", ["progress_text", "retry_after_nan", "retry_after_text", "exit", "panic", "exit_in_pool", "panic_in_pool"]
)
async def test_a_handlers_mistake_costs_its_own_job_an_attempt_and_its_worker_nothing(
    connection: Connection, start_worker: StartWorker, way: str
) -> None:
    worker = start_worker(worker_handlers=BOTH)
    job = await enqueue(connection, NewJob(rude.RUDE, "acme", {"way": way}))

    row = await the_end(connection, job.id)

    assert row["state"] == "dead_letter"
    assert row["crashes"] == 0
    after = await enqueue(connection, NewJob(handlers.EFFECT, "acme", {"seconds": 1}))
    await the_end(connection, after.id)
    assert worker.process.poll() is None


async def test_a_handler_that_exits_with_2_does_not_stop_the_supervisor(
    connection: Connection, start_worker: StartWorker
) -> None:
    supervisor = start_worker(worker_handlers=BOTH, worker_processes=2)
    job = await enqueue(connection, NewJob(rude.RUDE, "acme", {"way": "exit"}))
    await the_end(connection, job.id)
    assert supervisor.process.poll() is None


@pytest.mark.parametrize("why", ["cancel", "shutdown"])
async def test_a_handler_that_swallows_its_cancellation_did_not_succeed(
    connection: Connection, start_worker: StartWorker, gate: Path, why: str
) -> None:
    worker = start_worker(worker_handlers=BOTH, shutdown_grace=0)
    job = await enqueue(connection, NewJob(rude.SWALLOW, "acme", {"gate": str(gate)}))

    async def started() -> bool:
        return bool(started_runs(gate))

    await eventually(started)
    if why == "cancel":
        await cancel(connection, job.id)
        assert (await the_end(connection, job.id))["state"] == "cancelled"
    else:
        worker.signal(signal.SIGTERM)
        assert await worker.ended() == 0
        assert await connection.fetchval("SELECT state FROM jobs WHERE id = $1", job.id) == "queued"


@pytest.mark.parametrize("more", [0, 300_000])
async def test_an_unreadable_argument_does_not_poison_the_pool(
    connection: Connection, start_worker: StartWorker, more: int
) -> None:
    start_worker(worker_handlers=BOTH, worker_pool_size=1, worker_concurrency=1)
    bad = await enqueue(connection, NewJob(rude.POOLED, "acme", {"unreadable": more}))
    good = await enqueue_many(connection, [NewJob(rude.POOLED, "acme", {"value": n}) for n in range(5)])

    for n, job in enumerate(good):
        await the_end(connection, job.id, within=30)
        notes = await connection.fetch("SELECT note FROM effects WHERE job_id = $1", job.id)
        assert [row["note"] for row in notes] == [str(n)]
    assert (await the_end(connection, bad.id))["state"] == "dead_letter"


async def test_what_a_handler_does_after_its_completion_is_not_cut_off(
    connection: Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker(worker_handlers=BOTH)
    await enqueue(connection, NewJob(rude.AFTERWARDS, "acme", {"file": str(tmp_path / "after")}))

    async def after() -> bool:
        return (tmp_path / "after").exists()

    await eventually(after)
    assert "lease_lost" not in worker.text


async def test_an_error_in_a_task_group_is_judged_by_what_it_is(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(worker_handlers=BOTH)
    job = await enqueue(connection, NewJob(rude.TOGETHER, "acme"))
    row = await the_end(connection, job.id)
    assert (row["state"], row["error_code"], row["attempts"]) == ("failed", "PARSE_ERROR", 1)


@pytest.mark.heavy
async def test_a_transaction_the_server_ended_for_idleness_is_the_handlers_fault(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(worker_handlers=BOTH)
    job = await enqueue(connection, NewJob(rude.IDLE, "acme"))
    row = await the_end(connection, job.id, within=60)
    assert (row["state"], row["attempts"]) == ("dead_letter", 2)


@pytest.mark.heavy
async def test_ctrl_c_reaches_pool_processes_too_and_charges_nobody(
    connection: Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker(worker_handlers=BOTH, shutdown_grace=10)
    job = await enqueue(connection, NewJob(rude.POOLED, "acme", {"slowly": str(tmp_path)}))

    async def started() -> list[Path]:
        return list(tmp_path.glob("pool-*"))

    found = await eventually(started)
    # As a terminal does: to everybody in the foreground group.
    os.kill(int(found[0].name.removeprefix("pool-")), signal.SIGINT)
    worker.signal(signal.SIGINT)
    assert await worker.ended() == 0
    row = await connection.fetchrow("SELECT * FROM jobs WHERE id = $1", job.id)
    assert row is not None
    assert (row["state"], row["attempts"], row["crashes"]) in [("succeeded", 0, 0), ("queued", 0, 0)]


async def test_a_worker_that_used_its_pool_leaves_without_complaint(
    connection: Connection, start_worker: StartWorker
) -> None:
    worker = start_worker(worker_handlers=BOTH)
    await enqueue(connection, NewJob(handlers.BURN, "acme", {"seconds": 0.01}))
    await eventually(lambda: all_ended(connection))
    worker.signal(signal.SIGTERM)
    assert await worker.ended() == 0
    assert "leaving_stubborn_handlers" not in worker.text
