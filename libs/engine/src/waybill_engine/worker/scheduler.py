"""Periodic jobs, the worker's part: declaring its schedules, and being there when one is due.

Every worker does it; the database sees to it that a tick fires once. Nobody is elected, so nobody is missed.

    NIGHTLY = declares(Schedule("nightly_report", MAKE_REPORT, "30 2 * * *", tenant="acme", timezone="Europe/Berlin"))
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from waybill.db import Database
from waybill.errors import Refused
from waybill_engine.schedules import Declared, Schedule, declare
from waybill_engine.ticks import Fired, fire_due, next_in
from waybill_engine.worker.alarm import Alarm
from waybill_engine.worker.database_health import DatabaseHealth

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
    """Fires what is due, to within milliseconds of when it knows of it."""

    def __init__(self, db: Database, health: DatabaseHealth, schedules: Sequence[Schedule]) -> None:
        self._db = db
        self._health = health
        self._schedules = schedules
        self._alarm = Alarm()
        self.due_in = self._alarm.due_in

    async def run(self) -> None:
        await self._health.persist(self._declare)
        self.due_in(0.0)
        await self._alarm.keep(lambda: self._health.persist(self._fire))

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

    async def _fire(self) -> float | None:
        """Seconds until there may be something to do again."""
        fired = None
        async with self._db.hot() as connection:
            left = await next_in(connection)
            if left is not None and left <= 0:
                fired = await fire_due(connection)
                left = fired.next_in
        if fired is not None:
            _report(fired)
        return left


def _report(fired: Fired) -> None:
    for one in fired.firings:
        log.info("schedule_fired", schedule=one.schedule, tick=one.tick.isoformat(), job_id=str(one.job_id))
    for name in fired.held:
        log.error("schedule_held", schedule=name, hint=f"waybill schedules show {name}")
