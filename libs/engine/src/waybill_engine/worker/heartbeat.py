"""Holding the lease, and hearing what the database thinks of it.

One small update renews the lease of all jobs; a second statement asks which of them this worker holds. From that
follows which runs to stop (lost, or cancelled by a person) and which jobs it holds without knowing (a claim whose
answer was lost).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable

import structlog

from waybill.db import Database
from waybill_engine.lease import Held, renew
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.run import Stop
from waybill_engine.worker.slots import Bench

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Heartbeat:
    def __init__(
        self,
        db: Database,
        health: DatabaseHealth,
        bench: Bench,
        *,
        ttl: float,
        interval: float,
        on_gone: Callable[[], Awaitable[None]],
    ) -> None:
        self._db = db
        self._health = health
        self._bench = bench
        self._ttl = ttl
        self._interval = interval
        self._on_gone = on_gone
        self._wake = asyncio.Event()
        self._strangers: dict[uuid.UUID, int] = {}

    def wake(self) -> None:
        """Beat now: somebody changed something about our jobs."""
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
        """Renew, and act on the answer. With `claiming` false no claim can be under way, so nothing waits for one."""
        # Only what was held before the question can be missing in the answer; later claims are not in it yet.
        before = [run for run in self._bench.runs.values() if not run.ending and not run.completed]
        held = await self._health.persist(self._renew, every=min(0.5, self._interval / 4))
        if not held.alive:
            log.error("declared_gone", jobs=len(self._bench), hint="this worker was away for longer than its lease")
            self._bench.drop_everything()
            await self._on_gone()
            return
        for run in before:
            if run.completed:
                continue
            if held.tokens.get(run.lease.id) != run.lease.token:
                run.stop(Stop.LEASE_LOST)
            elif run.lease.id in held.stop:
                run.stop(Stop.CANCELLED)
        await self._bench.give_back_waiting(held.stop)  # what comes back and should stop is cancelled
        await self._release_strangers(held, at_once=not claiming)

    async def _renew(self) -> Held:
        # On a connection that died silently nobody answers; there must be time for another before the lease ends.
        async with self._db.hot() as connection, asyncio.timeout(self._ttl / 4):
            return await renew(connection, self._bench.worker_id, self._ttl)

    async def _release_strangers(self, held: Held, *, at_once: bool) -> None:
        """Give back jobs we hold but never heard of. Seen twice in a row, so that a claim under way is not one."""
        known = self._bench.known()
        unknown = {job_id: token for job_id, token in held.tokens.items() if job_id not in known}
        lost = {job_id: token for job_id, token in unknown.items() if at_once or self._strangers.get(job_id) == token}
        self._strangers = unknown
        if lost:
            log.warning("releasing_unknown_jobs", count=len(lost))
            await self._bench.release(lost, "The claim's answer never reached its worker.")
