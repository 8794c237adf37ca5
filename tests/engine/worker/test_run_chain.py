"""Runs that follow one another in a task have nothing to do with each other."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from support import handlers
from support.patience import eventually
from support.store import job, lane
from waybill.db import Database
from waybill.ids import new_id
from waybill.storage import LocalStorage
from waybill_engine.breaker import BreakerPolicy
from waybill_engine.context import JobContext
from waybill_engine.registry import Handler, HandlerFunction
from waybill_engine.worker.clients import Clients
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.dependencies import Dependencies
from waybill_engine.worker.process_pool import BlockingPool
from waybill_engine.worker.run import Stop
from waybill_engine.worker.slots import Slots

WORK = lane("acme", "noop")

LEFT_BEHIND: ContextVar[str | None] = ContextVar("left_behind", default=None)


def slots_for(db: Database, home: Path, handler: HandlerFunction, concurrency: int = 1) -> Slots:
    """The slots of a worker that writes no ends: its completions stay in memory."""
    health = DatabaseHealth()
    dependencies = Dependencies(db, health, BreakerPolicy())
    kinds = {"noop": Handler(handlers.NOOP, handler)}
    return Slots(new_id(), db, health, LocalStorage(home), Clients(), BlockingPool(1), kinds, concurrency, dependencies)


async def succeeded(slots: Slots, jobs: int) -> None:
    async def all_did() -> bool:
        return len(slots.completer) == jobs and not slots.runs

    await eventually(all_did)


async def test_empty_jobs_share_tasks_and_each_runs_once(db: Database, tmp_path: Path) -> None:
    ran: list[tuple[int, object]] = []

    async def empty(payload: dict[str, Any], context: JobContext) -> None:
        ran.append((context.id.int, asyncio.current_task()))

    slots = slots_for(db, tmp_path, empty, concurrency=3)
    slots.take([job(WORK, number) for number in range(500)])
    await succeeded(slots, 500)

    assert sorted(number for number, _ in ran) == list(range(500))
    assert len({task for _, task in ran}) < 400


async def test_no_run_sees_what_another_set(db: Database, tmp_path: Path) -> None:
    seen: list[str | None] = []

    async def careless(payload: dict[str, Any], context: JobContext) -> None:
        seen.append(LEFT_BEHIND.get())
        if context.id.int % 3 == 0:
            LEFT_BEHIND.set(str(context.id))
        if context.id.int % 2 == 0:
            await asyncio.sleep(0)

    slots = slots_for(db, tmp_path, careless)
    slots.take([job(WORK, number) for number in range(60)])
    await succeeded(slots, 60)

    assert seen == [None] * 60


async def test_a_cancellation_that_a_run_leaves_in_its_task_reaches_no_other(db: Database, tmp_path: Path) -> None:
    waited: list[int] = []

    async def gives_up_too_late(payload: dict[str, Any], context: JobContext) -> None:
        if context.id.int % 2 == 0:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            return
        await asyncio.sleep(0)
        waited.append(context.id.int)

    slots = slots_for(db, tmp_path, gives_up_too_late)
    slots.take([job(WORK, number) for number in range(20)])
    await succeeded(slots, 20)

    assert waited == list(range(1, 20, 2))


async def test_whoever_stops_a_run_that_waits_stops_that_one_alone(db: Database, tmp_path: Path) -> None:
    gate, tasks = asyncio.Event(), list[object]()

    async def waits_first(payload: dict[str, Any], context: JobContext) -> None:
        if context.id.int < 2:
            await gate.wait()
            tasks.append(asyncio.current_task())

    slots = slots_for(db, tmp_path, waits_first, concurrency=3)
    jobs = [job(WORK, number) for number in range(100)]
    slots.take(jobs)
    await eventually(lambda: _holds(lambda: len(slots.completer) == 98))

    slots.runs[jobs[0].id].stop(Stop.LEASE_LOST)
    await eventually(lambda: _holds(lambda: list(slots.runs) == [jobs[1].id]))
    gate.set()
    await succeeded(slots, 99)

    assert len(tasks) == 1
    assert jobs[0].id not in slots.completer.ids()


async def test_the_event_loop_gets_its_turn_between_runs(db: Database, tmp_path: Path) -> None:
    turns = [0] * 50
    looked = 0

    async def busy(payload: dict[str, Any], context: JobContext) -> None:
        turns[context.id.int] = looked
        ends = time.monotonic() + 0.001
        while time.monotonic() < ends:
            pass

    slots = slots_for(db, tmp_path, busy)
    jobs = [job(WORK, number) for number in range(50)]
    slots.take(jobs)
    while len(slots.completer) < 50:
        await asyncio.sleep(0)
        looked += 1

    assert len(set(turns)) == 50
    assert min(one.took for one in jobs) >= 0.001, "the time of a handler that keeps the loop is measured, too"


async def test_a_run_whose_predecessor_ends_in_a_bug_is_not_lost(db: Database, tmp_path: Path) -> None:
    async def empty(payload: dict[str, Any], context: JobContext) -> None:
        pass

    reported: list[object] = []

    def no_room() -> None:
        slots.low = 30  # from here on, nobody is told again
        slots.on_room = lambda: None
        raise RuntimeError("a bug of the worker's")

    asyncio.get_running_loop().set_exception_handler(lambda _loop, about: reported.append(about.get("exception")))
    slots = slots_for(db, tmp_path, empty)
    slots.low, slots.on_room = 50, no_room
    slots.take([job(WORK, number) for number in range(60)])
    await succeeded(slots, 60)
    gc.collect()
    assert [str(one) for one in reported] == ["a bug of the worker's"]


async def _holds(condition: Callable[[], bool]) -> bool:
    return condition()
