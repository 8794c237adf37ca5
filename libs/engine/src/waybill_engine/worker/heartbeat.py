"""The heartbeat: renews the worker's lease, and stops everything when the lease has surely ended.

One small update renews the lease of all jobs; a second statement, on its own, asks which jobs this worker has. From
that follow the runs to stop (taken over, or cancelled by a person) and the jobs that it has without knowing (a claim
whose answer was lost).

A worker that is cut off from the database cannot hear that its jobs were given to others. By its own monotonic clock it
knows when that may have happened at the earliest: when the lease's time has passed since the last renewal was sent.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable

import structlog

from waybill.db import Database
from waybill.telemetry.metrics import HEARTBEAT_LATE
from waybill_engine.lease import Holdings, holdings, renew
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.run import Stop
from waybill_engine.worker.slots import Slots

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_AGAIN_SOON = 1.0
"""Seconds until the second look after being cut off, which releases what was running before."""


class Heartbeat:
    def __init__(
        self,
        db: Database,
        health: DatabaseHealth,
        slots: Slots,
        *,
        ttl: float,
        interval: float,
        on_gone: Callable[[], Awaitable[None]],
    ) -> None:
        self._db = db
        self._health = health
        self._slots = slots
        self._ttl = ttl
        self._interval = interval
        self._on_gone = on_gone
        self._wake = asyncio.Event()
        self._unknown: dict[uuid.UUID, int] = {}
        self._loop = asyncio.get_running_loop()
        self._sent_at = self._loop.time()
        """When the last renewal that succeeded was sent; at first, when the worker registered."""
        self._failed_at = self._loop.time()
        """When a renewal last failed. A worker that has just started does not know how it was before."""
        self._cut_off = False
        self.tried_at = time.monotonic()
        """When a renewal was last tried, by a clock that every thread can read."""

    @property
    def well_for(self) -> float:
        """Seconds for which renewals have gone well; 0 while one is overdue, even if it has not failed yet."""
        now = self._loop.time()
        return 0.0 if now - self._sent_at > 1.5 * self._interval else now - self._failed_at

    def wake(self) -> None:
        """Renew now, because somebody changed something about our jobs."""
        self._wake.set()

    def registered(self) -> None:
        """The worker has just registered, which began a new lease."""
        self._sent_at = self._loop.time()

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._interval):
                    await self._wake.wait()
            except TimeoutError:
                pass  # the usual case: time to renew
            self._wake.clear()
            await self.beat()

    async def guard(self) -> None:
        """For ever: stop everything once the lease has ended, whether or not the database can be asked."""
        while True:
            left = self._sent_at + self._ttl - self._loop.time()
            if left > 0:
                await asyncio.sleep(left)
                continue
            if not self._cut_off:
                self._cut_off = True
                log.error("lease_ran_out", jobs=len(self._slots), hint="this worker cannot reach the database")
            self._slots.drop_everything()
            await asyncio.sleep(min(0.5, self._interval / 4))

    async def beat(self, *, claiming: bool = True) -> None:
        """Renew the lease and act on what the database says. With `claiming` false, no claim can be under way."""
        # Only jobs that ran before the question can be missing in the answer; later claims are not in it yet.
        before = [run for run in self._slots.runs.values() if not run.ending and not run.completed]
        every = min(0.5, self._interval / 4)
        held = None
        while held is None:  # while something keeps us from asking, go on renewing
            if not await self._health.persist(self._renew, every=every):
                log.error("declared_gone", jobs=len(self._slots), hint="this worker did not renew its lease in time")
                await self._on_gone()
                return
            held = await self._health.attempt(self._ask, pause=every)
        if self._cut_off:
            self._cut_off = False
            await self._db.give_up_hot()  # others may wait for answers on connections from before
            self._loop.call_later(_AGAIN_SOON, self.wake)
        for run in before:
            if run.completed:
                continue
            if held.tokens.get(run.claimed.id) != run.claimed.token:
                run.stop(Stop.LEASE_LOST)
            elif run.claimed.id in held.stop:
                run.stop(Stop.CANCELLED)
        await self._slots.give_back_waiting(held.stop)  # releasing a job that should stop cancels it
        await self._release_unknown(held, at_once=not claiming)

    async def _renew(self) -> bool:
        sent_at = self._loop.time()
        self.tried_at = time.monotonic()
        try:
            # A connection that died silently never answers; there must be time for another one before the lease ends.
            async with self._db.hot(urgent=True) as connection, asyncio.timeout(self._ttl / 4):
                alive = await renew(connection, self._slots.worker_id, self._ttl)
        except BaseException as error:
            self._failed_at = self._loop.time()
            if isinstance(error, TimeoutError):  # nothing holds up a renewal but the network, so tell the others
                await self._db.give_up_hot()
            raise
        HEARTBEAT_LATE.observe(max(sent_at - self._sent_at - self._interval, 0.0))
        self._sent_at = sent_at
        return alive

    async def _ask(self) -> Holdings:
        async with self._db.hot(urgent=True) as connection, asyncio.timeout(self._ttl / 4):
            return await holdings(connection, self._slots.worker_id)

    async def _release_unknown(self, held: Holdings, *, at_once: bool) -> None:
        """Release jobs we have without knowing, once two answers in a row list them: one may be a claim under way."""
        known = self._slots.known()
        unknown = {job_id: token for job_id, token in held.tokens.items() if job_id not in known}
        lost = {job_id: token for job_id, token in unknown.items() if at_once or self._unknown.get(job_id) == token}
        self._unknown = unknown
        if lost:
            log.warning("releasing_unknown_jobs", count=len(lost))
            await self._slots.release(lost, "The claim's answer never reached its worker.")
