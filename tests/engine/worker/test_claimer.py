"""A worker claims as much as it can start, in time, and nothing from a paused queue."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from support import engine, handlers
from support.patience import eventually
from support.workers import StartWorker, the_end
from waybill.db import Database
from waybill.db.database import Connection
from waybill.storage import LocalStorage
from waybill_engine import ClaimedJob, JobKind, NewJob, enqueue, enqueue_many
from waybill_engine.breaker import BreakerPolicy
from waybill_engine.context import JobContext
from waybill_engine.control import pause, resume
from waybill_engine.fair_share import FairShare
from waybill_engine.registry import Handler
from waybill_engine.worker.claimer import Claimer
from waybill_engine.worker.clients import Clients
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.dependencies import Dependencies
from waybill_engine.worker.process_pool import BlockingPool
from waybill_engine.worker.slots import Slots


async def test_more_are_taken_while_half_of_the_stock_is_left(
    db: Database, connection: Connection, tmp_path: Path
) -> None:
    """Nobody writes ends here, which would be another reason to ask."""
    await enqueue_many(connection, [NewJob(handlers.NOOP, "acme") for _ in range(3000)])
    worker = await engine.start_worker(connection, kinds=["noop"])
    fair_share, health = FairShare(), DatabaseHealth()
    await engine.refresh(connection, fair_share, ["default"], ["noop"])
    left: list[int] = []

    class Watched(Claimer):
        async def _claim(self, wanted: int) -> list[ClaimedJob]:
            left.append(len(slots.waiting))
            return await super()._claim(wanted)

    async def tiny(payload: dict[str, Any], job: JobContext) -> None:
        slots.typical = 1e-5  # however busy the machine is

    dependencies = Dependencies(db, health, BreakerPolicy())
    kinds = {"noop": Handler(handlers.NOOP, tiny)}
    slots = Slots(worker.id, db, health, LocalStorage(tmp_path), Clients(), BlockingPool(1), kinds, 2, dependencies)
    slots.typical = 1e-5
    claimer = Watched(db, health, slots, fair_share, BreakerPolicy(), poll_interval=60.0)
    slots.on_room = claimer.wake
    claiming = asyncio.create_task(claimer.run())

    async def all_ran() -> bool:
        return len(slots.completer) == 3000

    await eventually(all_ran)
    claimer.stop()
    await claiming
    assert left[0] == 0
    assert left[1] > 500


async def test_a_paused_queue_starts_nothing_until_it_is_resumed(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(poll_interval=0.1)
    await pause(connection, "default")
    waiting = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    other = JobKind("noop", queue="other")
    start_worker(worker_queues="other,default", poll_interval=0.1)
    passed = await enqueue(connection, NewJob(other, "acme"))

    await the_end(connection, passed.id)  # somebody claimed, and did not claim the waiting one
    assert await connection.fetchval("SELECT state FROM jobs WHERE id = $1", waiting.id) == "queued"

    await resume(connection, "default")
    assert (await the_end(connection, waiting.id))["state"] == "succeeded"
