"""What every worker does for the fleet: it promotes jobs that are due, takes turns of sequences that others missed, and
rescues the jobs of dead workers.

Any number of workers may do this at once; they skip each other's rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from waybill.db import Database
from waybill_engine.announcements import Announced, announce
from waybill_engine.due_times import DueScan, DueTimes, next_due
from waybill_engine.promotion import promote_due
from waybill_engine.rescue import Trouble, look_for_trouble, rescue
from waybill_engine.sequences import take_missed_turns
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.isolation import Isolation
from waybill_engine.worker.timers import Timer

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_BATCH = 1000

_EACH_WAITS = 0.1
_MOST_IN_LINE = 10
"""Each worker waits so many seconds longer than the one before it, and none longer than a second."""


class Promoter:
    """Makes scheduled jobs claimable within milliseconds of when they are due, as far as it knows of them."""

    def __init__(
        self,
        db: Database,
        health: DatabaseHealth,
        *,
        rank: Callable[[], int],
        on_promoted: Callable[[Sequence[Announced]], bool],
    ) -> None:
        """One worker is enough. `rank` is 0 for the one that does it; the others wait a little, in case it is gone.

        `on_promoted` is given the lanes of jobs that are now claimable. False if other workers should claim there, too.
        """
        self._db = db
        self._health = health
        self._rank = rank
        self._on_promoted = on_promoted
        self._timer = Timer()
        self._scan = DueScan()

    async def poll(self) -> DueTimes:
        """Find out what is due next, in case nobody announced it."""

        async def ask() -> DueTimes:
            async with self._db.hot() as connection:
                return await next_due(connection, self._scan.since())

        due = await self._health.persist(ask)
        self._scan.searched(due.searched)
        self.due_in(due.job)
        return due

    def due_in(self, seconds: float | None) -> None:
        """A job is due in so many seconds."""
        self._timer.due_in(self._in_turn(seconds))

    def promoted_elsewhere(self, next_in: float | None) -> None:
        """Another worker has promoted what was due; the next job is due in so many seconds."""
        if self._rank() > 0:
            self._timer.postpone(self._in_turn(next_in))

    async def run(self) -> None:
        await self._timer.run(lambda: self._health.persist(self._promote))

    def _in_turn(self, seconds: float | None) -> float | None:
        return None if seconds is None else max(seconds, 0.0) + min(self._rank(), _MOST_IN_LINE) * _EACH_WAITS

    async def _promote(self) -> float | None:
        async with self._db.hot() as connection:
            promoted = await promote_due(connection, _BATCH, announced=False, since=self._scan.since())
            turns_in = await take_missed_turns(connection) if promoted.missed_turns else None
        self._scan.searched(promoted.searched)
        if promoted.lanes and not self._on_promoted(promoted.lanes):
            async with self._db.hot() as connection:
                await announce(connection, promoted.lanes)
        if promoted.count == _BATCH:
            return 0.0
        due = (self._in_turn(promoted.next_in), turns_in)
        return min((seconds for seconds in due if seconds is not None), default=None)


class Rescuer:
    """Returns the jobs of workers that are gone, and has suspects of a crash run alone."""

    def __init__(
        self,
        db: Database,
        health: DatabaseHealth,
        isolation: Isolation,
        well_for: Callable[[], float],
        *,
        queues: Sequence[str],
        kinds: Sequence[str],
        heartbeat_interval: float,
    ) -> None:
        """`well_for` says how long this worker's own lease has been renewed without a failure."""
        self._db = db
        self._health = health
        self._isolation = isolation
        self._well_for = well_for
        self._queues = list(queues)
        self._kinds = list(kinds)
        self._found = Trouble(gone=False, suspects=False)
        self._some = asyncio.Event()
        # After an outage every lease has run out; workers that are alive need this long to renew theirs.
        self._settle_time = heartbeat_interval * 1.25

    async def poll(self) -> None:
        self._found = await self._health.persist(self._look)
        if self._found.gone or self._found.suspects:
            self._some.set()

    async def run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            if self._found.gone and self._well_for() >= self._settle_time:
                await self._health.persist(self._rescue)
                self._found = await self._health.persist(self._look)  # a rescue may have made suspects
            if self._found.suspects and not self._isolation.busy:
                self._isolation.start()

    async def _look(self) -> Trouble:
        async with self._db.hot() as connection:
            return await look_for_trouble(connection, self._queues, self._kinds, settle_time=self._settle_time)

    async def _rescue(self) -> None:
        async with self._db.hot() as connection:
            for one in await rescue(connection, settle_time=self._settle_time):
                log.warning("rescued", job_id=str(one.id), verdict=one.event, worker=one.worker)
