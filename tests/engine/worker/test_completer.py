"""Completions are written in batches, and nobody's lock holds up more than its own job."""

from __future__ import annotations

from pathlib import Path

import asyncpg

from support import handlers
from support.engine import find_contradictions
from support.patience import eventually
from support.workers import SLOW, StartWorker, all_ended, counts, until_started
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue, enqueue_family, enqueue_many


async def test_a_job_that_somebody_has_locked_is_the_only_one_that_waits(
    connection: Connection, start_worker: StartWorker, database_url: str, gate: Path
) -> None:
    start_worker(worker_concurrency=60, **SLOW)
    locked = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    others = [NewJob(handlers.GATED, "acme", {"gate": str(gate)}) for _ in range(50)]
    await enqueue_many(connection, others)
    await until_started(gate, 51)
    other = await asyncpg.connect(database_url)
    async with other.transaction():
        await other.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", locked.id)
        (gate / "open").touch()

        async def only_one_is_left() -> bool:
            return await counts(connection) == {"succeeded": 50, "running": 1}

        await eventually(only_one_is_left)
    await other.close()
    await eventually(lambda: all_ended(connection))
    assert await counts(connection) == {"succeeded": 51}
    assert await find_contradictions(connection) == []


async def test_children_of_a_locked_parent_do_not_hold_up_others(
    connection: Connection, start_worker: StartWorker, database_url: str, gate: Path
) -> None:
    start_worker(worker_concurrency=60, **SLOW)
    one = NewJob(handlers.GATED, "acme", {"gate": str(gate)})
    family = await enqueue_family(connection, NewJob(handlers.NOOP, "acme"), [one])
    await enqueue_many(connection, [NewJob(handlers.GATED, "acme", {"gate": str(gate)}) for _ in range(20)])
    await until_started(gate, 21)
    other = await asyncpg.connect(database_url)
    async with other.transaction():
        await other.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", family.parent.id)
        (gate / "open").touch()

        async def the_others_are_done() -> bool:
            return await counts(connection) == {"succeeded": 20, "running": 1, "scheduled": 1}

        await eventually(the_others_are_done)
    await other.close()
    await eventually(lambda: all_ended(connection))
    assert await counts(connection) == {"succeeded": 22}
    assert await find_contradictions(connection) == []
