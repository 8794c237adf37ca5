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
    slots.typical, slots.typical_bytes = 1e-5, 2.0
    claimer = Watched(db, health, slots, fair_share, BreakerPolicy(), poll_interval=60.0)
    woken: list[int] = []

    def wake() -> None:
        woken.append(len(slots.waiting))
        claimer.wake()

    slots.on_room = wake
    claiming = asyncio.create_task(claimer.run())

    async def all_ran() -> bool:
        return len(slots.completer) == 3000

    await eventually(all_ran)
    claimer.stop()
    await claiming
    assert left[0] == 0
    assert woken[0] > 500
    assert left[1] > 0, "by then others ran, and how many depends on the machine"


async def test_what_is_claimed_ahead_is_bounded_by_its_bytes(
    db: Database, connection: Connection, tmp_path: Path
) -> None:
    big = {"text": "x" * 40_000}
    await enqueue_many(connection, [NewJob(handlers.NOOP, "acme", big) for _ in range(300)])
    worker = await engine.start_worker(connection, kinds=["noop"])
    fair_share, health = FairShare(), DatabaseHealth()
    await engine.refresh(connection, fair_share, ["default"], ["noop"])
    held: list[int] = []

    async def tiny(payload: dict[str, Any], job: JobContext) -> None:
        slots.typical = 1e-5  # so short that thousands would be claimed ahead
        assert payload == big
        held.append(sum(len(one.payload_text) for one in slots.waiting))

    dependencies = Dependencies(db, health, BreakerPolicy())
    kinds = {"noop": Handler(handlers.NOOP, tiny)}
    slots = Slots(worker.id, db, health, LocalStorage(tmp_path), Clients(), BlockingPool(1), kinds, 2, dependencies)
    slots.typical = 1e-5
    claimer = Claimer(db, health, slots, fair_share, BreakerPolicy(), poll_interval=60.0)
    slots.on_room = claimer.wake
    claiming = asyncio.create_task(claimer.run())

    async def all_ran() -> bool:
        return len(slots.completer) == 300

    await eventually(all_ran)
    claimer.stop()
    await claiming
    assert 10 * 40_000 < max(held) <= 4 * 1024 * 1024
    assert not any("x" in one.payload_text for one in slots.completer._waiting.values())


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
