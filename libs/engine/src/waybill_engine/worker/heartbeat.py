"""The heartbeat: renews the worker's lease and acts on the answer.

One small update renews the lease of all jobs; a second statement asks which jobs this worker has. From that follow the
runs to stop (taken over, or cancelled by a person) and the jobs that it has without knowing (a claim whose answer was
lost).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable

import structlog

from waybill.db import Database
from waybill_engine.lease import Renewal, renew
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.run import Stop
from waybill_engine.worker.slots import Slots

log: structlog.stdlib.BoundLogger = structlog.get_logger()


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

    def wake(self) -> None:
        """Renew now, because somebody changed something about our jobs."""
        self._wake.set()

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._interval):
                    await self._wake.wait()
            except TimeoutError:
                pass  # the usual case: time to renew
            self._wake.clear()
            await self.beat()

    async def beat(self, *, claiming: bool = True) -> None:
        """Renew the lease and act on the answer. With `claiming` false, no claim can be under way."""
        # Only jobs that ran before the question can be missing in the answer; later claims are not in it yet.
        before = [run for run in self._slots.runs.values() if not run.ending and not run.completed]
        renewal = await self._health.persist(self._renew, every=min(0.5, self._interval / 4))
        if not renewal.alive:
            log.error("declared_gone", jobs=len(self._slots), hint="this worker did not renew its lease in time")
            self._slots.drop_everything()
            await self._on_gone()
            return
        for run in before:
            if run.completed:
                continue
            if renewal.tokens.get(run.claimed.id) != run.claimed.token:
                run.stop(Stop.LEASE_LOST)
            elif run.claimed.id in renewal.stop:
                run.stop(Stop.CANCELLED)
        await self._slots.give_back_waiting(renewal.stop)  # releasing a job that should stop cancels it
        await self._release_unknown(renewal, at_once=not claiming)

    async def _renew(self) -> Renewal:
        # A connection that died silently never answers; there must be time for another one before the lease ends.
        async with self._db.hot() as connection, asyncio.timeout(self._ttl / 4):
            return await renew(connection, self._slots.worker_id, self._ttl)

    async def _release_unknown(self, renewal: Renewal, *, at_once: bool) -> None:
        """Release jobs we have without knowing, once two answers in a row list them: one may be a claim under way."""
        known = self._slots.known()
        unknown = {job_id: token for job_id, token in renewal.tokens.items() if job_id not in known}
        lost = {job_id: token for job_id, token in unknown.items() if at_once or self._unknown.get(job_id) == token}
        self._unknown = unknown
        if lost:
            log.warning("releasing_unknown_jobs", count=len(lost))
            await self._slots.release(lost, "The claim's answer never reached its worker.")
