"""Ticks of schedules become jobs: one job per tick that is owed, across the whole fleet.

The first worker to come locks the schedules that are due, and the others skip them. The jobs and the move to the next
tick commit together, so a worker that dies has done all of it or nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from waybill_engine.cron import Cron
from waybill_engine.due_times import NEXT_TICK_IN
from waybill_engine.enqueue import enqueue_many
from waybill_engine.new_job import NewJob
from waybill_engine.schedules import COLUMNS, Missed, stored

if TYPE_CHECKING:
    import asyncpg

    from waybill.db.database import Connection

MOST_AT_ONCE = 100
"""The most ticks of one schedule that fire in one transaction. Further ones fire in the next."""

_BUSY = 1.0
"""Seconds after which to check on schedules that another worker was firing."""

_INSTANT = timedelta(microseconds=1)

# It never waits: schedules that another worker has locked are skipped, and those it has just moved on are not due.
_DUE = f"""
SELECT {COLUMNS}
  FROM schedules
 WHERE paused_at IS NULL AND next_at <= now()
 ORDER BY next_at
 LIMIT $1
   FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - made of constants

_MOVE_ON = """
UPDATE schedules
   SET next_at = moved.next_at,
       last_tick = COALESCE(moved.last_tick, schedules.last_tick),
       last_job_id = COALESCE(moved.last_job_id, schedules.last_job_id)
  FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::uuid[])
       AS moved (name, next_at, last_tick, last_job_id)
 WHERE schedules.name = moved.name
"""

_PAUSE = "UPDATE schedules SET paused_at = now(), paused_reason = $2 WHERE name = $1"


@dataclass(frozen=True, slots=True)
class Firing:
    schedule: str
    tick: datetime
    job_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Fired:
    firings: Sequence[Firing]
    paused: Sequence[str]
    """Schedules that could not be fired and were paused, with the reason in their row."""
    next_in: float | None
    """Seconds until the next tick, if there is one; 0 when another is owed already."""


@dataclass(frozen=True, slots=True)
class _Plan:
    name: str
    ticks: Sequence[datetime]
    jobs: Sequence[NewJob]
    next_at: datetime | None


async def next_in(connection: Connection) -> float | None:
    """Seconds until the next tick, 0 or less when one is due, None when there is none. One cheap statement."""
    found: float | None = await connection.fetchval(NEXT_TICK_IN)
    return found


async def fire_due(connection: Connection, limit: int = 50) -> Fired:
    """Enqueue a job for every tick that is owed, and move the schedules on, in one transaction."""
    async with connection.transaction():
        rows = await connection.fetch(_DUE, limit)
        plans, paused = [], []
        for row in rows:
            try:
                plans.append(_plan(row))
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one row, the others fire
                await connection.execute(_PAUSE, row["name"], f"It cannot be fired: {error}")
                paused.append(row["name"])
        firings = await _enqueue(connection, plans)
        last = {firing.schedule: firing for firing in firings}
        await connection.execute(
            _MOVE_ON,
            [plan.name for plan in plans],
            [plan.next_at for plan in plans],
            [last[plan.name].tick if plan.name in last else None for plan in plans],
            [last[plan.name].job_id if plan.name in last else None for plan in plans],
        )
        left = await next_in(connection)
    if left is not None and left <= 0:
        ours = len(rows) == limit or any(len(plan.ticks) == MOST_AT_ONCE for plan in plans)
        left = 0.0 if ours else _BUSY
    return Fired(firings, paused, left)


def owed(
    cron: Cron, missed: Missed, grace: float, next_at: datetime, now: datetime
) -> tuple[list[datetime], datetime | None]:
    """The ticks from `next_at` until `now` that fire, and the one that comes after them."""
    if missed is Missed.ONCE:
        latest = cron.latest(now)
        return [latest] if latest is not None and latest >= next_at else [], next(cron.after(now), None)
    since = next_at - _INSTANT
    if missed is Missed.SKIP:
        since = max(since, now - timedelta(seconds=grace))
    ticks = list(islice(takewhile(lambda tick: tick <= now, cron.after(since)), MOST_AT_ONCE))
    return ticks, next(cron.after(ticks[-1] if len(ticks) == MOST_AT_ONCE else now), None)


def _plan(row: asyncpg.Record) -> _Plan:
    schedule = stored(row)
    cron = Cron(schedule.cron, schedule.timezone)
    ticks, next_at = owed(cron, schedule.missed, schedule.grace, row["next_at"], row["now"])
    return _Plan(schedule.name, ticks, [schedule.job(tick) for tick in ticks], next_at)


async def _enqueue(connection: Connection, plans: Sequence[_Plan]) -> list[Firing]:
    # Only operators and our own services declare schedules, so their jobs may have any priority.
    jobs = [job for plan in plans for job in plan.jobs]
    enqueued = iter(await enqueue_many(connection, jobs, as_operator=True))
    return [Firing(plan.name, tick, next(enqueued).id) for plan in plans for tick in plan.ticks]
