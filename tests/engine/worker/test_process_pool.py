"""Blocking work runs in processes of its own, which end when they must and hurt nobody else."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from support import handlers
from support import rude_handlers as rude
from support.patience import eventually
from support.rude_handlers import BOTH
from support.workers import StartWorker, all_ended, the_end
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue, enqueue_many


async def test_blocking_work_past_its_time_limit_is_killed(
    connection: Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker(worker_pool_size=1)
    first = await enqueue(connection, NewJob(handlers.BURN, "acme", {"seconds": 0}))
    await the_end(connection, first.id)  # the pool's process has started, which may take longer than the time limit
    pid_file = tmp_path / "pid"
    job = await enqueue(connection, NewJob(handlers.HANG_BLOCKING, "acme", {"pid_file": str(pid_file)}))

    row = await the_end(connection, job.id)

    assert (row["state"], row["error_code"]) == ("dead_letter", "TIMEOUT")

    async def dead() -> bool:
        return not psutil.pid_exists(int(pid_file.read_text()))

    await eventually(dead)


async def test_unreadable_arguments_do_not_poison_the_pool(connection: Connection, start_worker: StartWorker) -> None:
    start_worker(worker_handlers=BOTH, worker_pool_size=1, worker_concurrency=1)
    # One fits into a pipe's buffer, one does not.
    bad = await enqueue_many(connection, [NewJob(rude.POOLED, "acme", {"unreadable": more}) for more in (0, 300_000)])
    good = await enqueue_many(connection, [NewJob(rude.POOLED, "acme", {"value": n}) for n in range(5)])

    for n, job in enumerate(good):
        await the_end(connection, job.id, within=30)
        notes = await connection.fetch("SELECT note FROM effects WHERE job_id = $1", job.id)
        assert [row["note"] for row in notes] == [str(n)]
    assert [(await the_end(connection, job.id))["state"] for job in bad] == ["dead_letter", "dead_letter"]


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
