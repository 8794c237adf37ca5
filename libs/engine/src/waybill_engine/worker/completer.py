"""Completions of jobs, gathered and written in batches.

A batch is written as soon as the one before it: a single completion when the worker is calm, hundreds when it is busy,
because then a batch waits a few milliseconds for more. A batch whose answer was lost with its connection is written
again; the fence makes that harmless. A process that goes on under a new id writes what it completed under the old one
in a batch of its own. A completion that has to wait for somebody's lock waits alone.
"""

from __future__ import annotations

import asyncio
import uuid
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING

import structlog

from waybill.db import Database
from waybill.telemetry.metrics import LEASES_LOST
from waybill_engine.claim import ClaimedJob
from waybill_engine.finish import succeed, succeed_where_free, succeeded_by
from waybill_engine.models import State
from waybill_engine.worker.database_health import DatabaseHealth

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill_engine.worker.slots import Slots

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_LARGEST = 1000
_FEW = 400
_GATHERING = 0.004
"""Seconds that a small batch waits for more completions while further jobs wait for a slot. Every commit writes to
disk, and small ones would be most of the work."""
_PATIENCE = 0.5
"""Seconds that a batch may take. After that, somebody's lock is probably in the way."""
_LOCKED_AGAIN = 0.25
"""Seconds between tries for a completion whose row is locked."""


class Completer:
    def __init__(self, db: Database, health: DatabaseHealth, slots: Slots) -> None:
        self._slots = slots
        self._db = db
        self._health = health
        self._waiting: dict[uuid.UUID, ClaimedJob] = {}
        self._some = asyncio.Event()
        self._written = asyncio.Condition()
        self._in_flight: dict[uuid.UUID, ClaimedJob] = {}
        self._locked: dict[uuid.UUID, ClaimedJob] = {}
        """Jobs whose row, or whose parent's, somebody else has locked. The others do not wait for them."""
        self._some_locked = asyncio.Event()

    def ids(self) -> list[uuid.UUID]:
        return [*self._waiting, *self._in_flight, *self._locked]

    def __len__(self) -> int:
        return len(self._waiting) + len(self._in_flight) + len(self._locked)

    def add(self, job: ClaimedJob) -> None:
        self._waiting[job.id] = job
        self._some.set()

    async def drained(self) -> None:
        """Wait until everything added so far is written."""
        async with self._written:
            await self._written.wait_for(lambda: not len(self))

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
                self._slots.on_written(batch.values())

    def _next_batch(self) -> dict[uuid.UUID, ClaimedJob]:
        everything = self._waiting
        if len(everything) <= _LARGEST:
            self._waiting = {}
            return everything
        self._waiting = dict(islice(everything.items(), _LARGEST, None))
        return dict(islice(everything.items(), _LARGEST))

    async def _write(self, batch: dict[uuid.UUID, ClaimedJob]) -> None:
        finished: list[ClaimedJob] = []
        for worker_id, jobs in groupby(batch.values(), key=attrgetter("worker_id")):
            mine = list(jobs)
            runs = [(job.id, job.token) for job in mine]
            async with self._db.hot() as connection:
                try:
                    async with asyncio.timeout(_PATIENCE):
                        done, locked = await succeed(connection, worker_id, runs), set[uuid.UUID]()
                except TimeoutError:
                    done, locked = await succeed_where_free(connection, worker_id, runs)
                if len(done) == len(runs):
                    finished += mine
                    continue
                accounted = done | locked
                earlier = await self._account_for(
                    connection, worker_id, [run for run in runs if run[0] not in accounted]
                )
            finished += [batch[job_id] for job_id in done | earlier]
            self._locked |= {job_id: batch[job_id] for job_id in locked}
            if locked:
                log.info("completions_wait_for_a_lock", count=len(locked))
                self._some_locked.set()
        if finished:  # told at the end, because a failure before it has all of this repeated
            self._slots.on_finished(finished, State.SUCCEEDED)

    async def _account_for(
        self, connection: Connection, worker_id: uuid.UUID, missing: list[tuple[uuid.UUID, int]]
    ) -> set[uuid.UUID]:
        """Say which jobs were lost. The others, which it returns, were written by an earlier try that arrived."""
        if not missing:
            return set()
        async with connection.transaction():
            earlier = await succeeded_by(connection, worker_id, missing)
        for job_id, token in missing:
            if job_id not in earlier:
                LEASES_LOST.inc()
                log.warning("completion_refused", job_id=str(job_id), lease_token=token, reason="lease lost")
        return earlier

    async def write_the_locked(self) -> None:
        """For ever: write the completions that had to wait for somebody's lock, each by itself."""
        while True:
            await self._some_locked.wait()
            self._some_locked.clear()
            written: dict[uuid.UUID, ClaimedJob] = {}
            while self._locked:
                await asyncio.sleep(_LOCKED_AGAIN)
                written |= self._locked
                for job in list(self._locked.values()):
                    await self._health.persist(lambda job=job: self._write_locked(job))  # type: ignore[misc]
            async with self._written:
                self._written.notify_all()
            self._slots.on_written(written.values())

    async def _write_locked(self, job: ClaimedJob) -> None:
        run = (job.id, job.token)
        async with self._db.hot() as connection:
            done, locked = await succeed_where_free(connection, job.worker_id, [run])
            if not locked:
                done |= await self._account_for(connection, job.worker_id, [] if done else [run])
                self._locked.pop(job.id, None)
        if done:
            self._slots.on_finished([job], State.SUCCEEDED)
