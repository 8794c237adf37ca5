"""Jobs that wait for a slot start, or go back so that another worker can take them."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from support import handlers
from support.patience import eventually
from support.workers import (
    StartWorker,
    all_ended,
    beat,
    counts,
    started_runs,
    the_worker,
    until_started,
)
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue_many
from waybill_engine.control import cancel


async def claimed_ahead(connection: Connection, start_worker: StartWorker, gate: Path) -> list[object]:
    """A worker that has learned that jobs are tiny, and has claimed some behind two that are not."""
    await enqueue_many(connection, [NewJob(handlers.NOOP, "acme") for _ in range(3000)])
    start_worker(worker_concurrency=2, shutdown_grace=60)
    await eventually(lambda: all_ended(connection))
    async with connection.transaction():
        await enqueue_many(connection, [NewJob(handlers.GATED, "acme", {"gate": str(gate)}) for _ in range(2)])
        behind = await enqueue_many(connection, [NewJob(handlers.NOOP, "acme") for _ in range(20)])

    async def two_started() -> bool:
        return len(started_runs(gate)) == 2

    await eventually(two_started)
    assert (await counts(connection)).get("running", 0) > 2, "nothing was claimed ahead: the test shows nothing"
    return [job.id for job in behind]


@pytest.mark.heavy
async def test_jobs_held_ahead_do_not_wait_behind_long_ones_while_others_are_idle(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    behind = await claimed_ahead(connection, start_worker, gate)
    start_worker(worker_concurrency=2)

    async def through() -> bool:
        return (await counts(connection))["succeeded"] == 3000 + len(behind)

    await eventually(through)


async def test_a_job_held_ahead_can_be_cancelled(connection: Connection, start_worker: StartWorker, gate: Path) -> None:
    behind = await claimed_ahead(connection, start_worker, gate)
    await cancel(connection, behind[0])  # type: ignore[arg-type]

    async def cancelled() -> bool:
        return bool(await connection.fetchval("SELECT state = 'cancelled' FROM jobs WHERE id = $1", behind[0]))

    await eventually(cancelled)


async def test_what_waits_for_a_slot_is_given_back_at_once_at_shutdown(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    behind = await claimed_ahead(connection, start_worker, gate)
    pid = await connection.fetchval("SELECT pid FROM workers WHERE state = 'active'")
    psutil.Process(pid).terminate()

    async def given_back() -> bool:
        return await counts(connection) == {"succeeded": 3000, "running": 2, "queued": len(behind)}

    await eventually(given_back)  # the grace period is 60 s, and its sign-off would give back the rest


async def test_a_new_worker_holds_no_more_than_it_has_slots_for(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    await enqueue_many(connection, [NewJob(handlers.GATED, "acme", {"gate": str(gate)}) for _ in range(50)])
    start_worker(worker_concurrency=3)
    await until_started(gate, 3)
    await beat(connection, await the_worker(connection))
    assert await counts(connection) == {"running": 3, "queued": 47}
