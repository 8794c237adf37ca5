"""The worker's part in periodic jobs: it declares its schedules and fires those that are due.

Every worker does this, and the database makes sure that a tick fires once. No leader has to be elected.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from waybill.db import Database
from waybill.errors import Refused
from waybill_engine.schedules import Declared, Schedule, declare
from waybill_engine.ticks import Fired, fire_due, next_in
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.timers import Timer

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Scheduler:
    """Fires schedules within milliseconds of their ticks, as far as it knows of them."""

    def __init__(self, db: Database, health: DatabaseHealth, schedules: Sequence[Schedule]) -> None:
        self._db = db
        self._health = health
        self._schedules = schedules
        self._timer = Timer()
        self.due_in = self._timer.due_in

    async def run(self) -> None:
        await self._health.persist(self._declare)
        self.due_in(0.0)
        await self._timer.run(lambda: self._health.persist(self._fire))

    async def _declare(self) -> None:
        async with self._db.hot() as connection:
            for schedule in self._schedules:
                try:
                    outcome = await declare(connection, schedule)
                except Refused as error:  # its last tick has passed: that must not stop the worker
                    log.error("schedule_refused", schedule=schedule.name, error=error.message)
                else:
                    if outcome is not Declared.UNCHANGED:
                        log.info(f"schedule_{outcome}", schedule=schedule.name, cron=schedule.cron)

    async def _fire(self) -> float | None:
        """Fire what is due; the answer is the seconds until the next tick."""
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
    for name in fired.paused:
        log.error("schedule_paused", schedule=name, hint=f"waybill schedules show {name}")
