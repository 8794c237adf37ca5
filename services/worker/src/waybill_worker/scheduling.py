"""Periodic jobs, the worker's part: declaring its schedules, and being there when one is due.

Every worker does it; the database sees to it that a tick fires once. Nobody is elected, so nobody is missed.

    NIGHTLY = declares(Schedule("nightly_report", MAKE_REPORT, "30 2 * * *", tenant="acme", timezone="Europe/Berlin"))
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import structlog

from waybill.db import Database
from waybill.errors import Refused
from waybill.jobs.fire import Fired, fire_due, next_in
from waybill.jobs.schedules import Declared, Schedule, declare
from waybill_worker.outages import DatabaseHealth

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_declared: dict[str, Schedule] = {}


def declares(schedule: Schedule) -> Schedule:
    """Have every worker that imports this module see to it that the schedule is there."""
    known = _declared.setdefault(schedule.name, schedule)
    if known != schedule:
        raise ValueError(f"schedule {schedule.name!r} is declared twice: {known!r} and {schedule!r}")
    return schedule


def declared() -> Sequence[Schedule]:
    """What the modules imported so far declare."""
    return [_declared[name] for name in sorted(_declared)]


class Scheduler:
    """Fires what is due, to within milliseconds of when it knows of it. Idle, it asks once per poll interval."""

    def __init__(
        self, db: Database, health: DatabaseHealth, schedules: Sequence[Schedule], *, poll_interval: float
    ) -> None:
        self._db = db
        self._health = health
        self._schedules = schedules
        self._poll_interval = poll_interval
        self._due_at = 0.0
        self._wake = asyncio.Event()

    def due_in(self, seconds: float) -> None:
        """Something is due in so many seconds; be there."""
        due_at = asyncio.get_running_loop().time() + max(seconds, 0.0)
        if due_at < self._due_at:
            self._due_at = due_at
            self._wake.set()

    async def run(self) -> None:
        await self._health.persist(self._declare)
        loop = asyncio.get_running_loop()
        while True:
            self._due_at = math.inf  # what is announced from here on may have come too late for the question
            left = await self._health.persist(self._fire)
            self._due_at = min(self._due_at, loop.time() + min(self._poll_interval, left))
            while (left := self._due_at - loop.time()) > 0:
                self._wake.clear()
                try:
                    async with asyncio.timeout(left):
                        await self._wake.wait()
                except TimeoutError:
                    break

    async def _declare(self) -> None:
        async with self._db.hot() as connection:
            for schedule in self._schedules:
                try:
                    outcome = await declare(connection, schedule)
                except Refused as error:  # its last day was yesterday: no reason not to work
                    log.error("schedule_refused", schedule=schedule.name, error=error.message)
                else:
                    if outcome is not Declared.UNCHANGED:
                        log.info(f"schedule_{outcome}", schedule=schedule.name, cron=schedule.cron)

    async def _fire(self) -> float:
        """Seconds until there may be something to do again."""
        fired = None
        async with self._db.hot() as connection:
            left = await next_in(connection)
            if left is not None and left <= 0:
                fired = await fire_due(connection)
                left = fired.next_in
        if fired is not None:
            _report(fired)
        # A touch late rather than a touch early: early would mean asking twice.
        return self._poll_interval if left is None else left + 0.001


def _report(fired: Fired) -> None:
    for one in fired.firings:
        log.info("schedule_fired", schedule=one.schedule, tick=one.tick.isoformat(), job_id=str(one.job_id))
    for name in fired.held:
        log.error("schedule_held", schedule=name, hint=f"waybill schedules show {name}")
