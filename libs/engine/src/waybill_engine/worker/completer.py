"""Completions of jobs, gathered and written in batches.

A batch is written as soon as the one before it: a single completion when the worker is calm, hundreds when it is busy,
because then a batch waits a few milliseconds for more. A batch whose answer was lost with its connection is written
again; the fence makes that harmless. A process that goes on under a new id writes what it completed under the old one
in a batch of its own.
"""

from __future__ import annotations

import asyncio
import uuid
from itertools import islice
from typing import TYPE_CHECKING

import structlog

from waybill.db import Database
from waybill_engine.claim import ClaimedJob
from waybill_engine.finish import succeed, succeeded_by
from waybill_engine.worker.database_health import DatabaseHealth

if TYPE_CHECKING:
    from waybill_engine.worker.slots import Slots

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_LARGEST = 1000
_FEW = 400
_GATHERING = 0.004
"""Seconds that a small batch waits for more completions while further jobs wait for a slot. Every commit writes to
disk, and small ones would be most of the work."""


class Completer:
    def __init__(self, db: Database, health: DatabaseHealth, slots: Slots) -> None:
        self._slots = slots
        self._db = db
        self._health = health
        self._waiting: dict[uuid.UUID, ClaimedJob] = {}
        self._some = asyncio.Event()
        self._written = asyncio.Condition()
        self._in_flight: dict[uuid.UUID, ClaimedJob] = {}

    def ids(self) -> list[uuid.UUID]:
        return [*self._waiting, *self._in_flight]

    def __len__(self) -> int:
        return len(self._waiting) + len(self._in_flight)

    def add(self, job: ClaimedJob) -> None:
        self._waiting[job.id] = job
        self._some.set()

    async def drained(self) -> None:
        """Wait until everything added so far is written."""
        async with self._written:
            await self._written.wait_for(lambda: not self._waiting and not self._in_flight)

    async def run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            while self._waiting:
                if len(self._waiting) < _FEW and self._slots.waiting:
                    await asyncio.sleep(_GATHERING)
                batch = self._in_flight = self._next_batch()
                await self._health.persist(lambda batch=batch: self._write(batch))  # type: ignore[misc]
                self._in_flight = {}
                async with self._written:
                    self._written.notify_all()
                self._slots.on_written()

    def _next_batch(self) -> dict[uuid.UUID, ClaimedJob]:
        everything = self._waiting
        if len(everything) <= _LARGEST:
            self._waiting = {}
            return everything
        self._waiting = dict(islice(everything.items(), _LARGEST, None))
        return dict(islice(everything.items(), _LARGEST))

    async def _write(self, batch: dict[uuid.UUID, ClaimedJob]) -> None:
        runs: dict[uuid.UUID, list[tuple[uuid.UUID, int]]] = {}
        for job in batch.values():
            runs.setdefault(job.worker_id, []).append((job.id, job.token))
        for worker_id, mine in runs.items():
            await self._write_of(worker_id, mine)

    async def _write_of(self, worker_id: uuid.UUID, runs: list[tuple[uuid.UUID, int]]) -> None:
        async with self._db.hot() as connection:
            done = await succeed(connection, worker_id, runs)
            if len(done) == len(runs):
                return
            missing = [run for run in runs if run[0] not in done]
            # Either an earlier try of this very batch arrived after all, or the job was taken over.
            async with connection.transaction():
                earlier = await succeeded_by(connection, worker_id, missing)
        for job_id, token in missing:
            if job_id not in earlier:
                log.warning("completion_refused", job_id=str(job_id), lease_token=token, reason="lease lost")
