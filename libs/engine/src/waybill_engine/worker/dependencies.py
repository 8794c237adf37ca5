"""What this worker's runs met of the things they lean on: counted here, told to the fleet's breakers.

Counts are flushed together, once a second when all is well and at once when something failed. What was counted twice
because an answer got lost, or not at all because the worker died, changes a share by a hair; a probe's end, which
decides, is written with the end of its run.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import datetime

import structlog

from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Failure
from waybill_engine import JobKind, Lease
from waybill_engine.breaker import BreakerPolicy, held_for, probe_result, record
from waybill_engine.worker.database_health import DatabaseHealth

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_CALM = 1.0
"""Seconds between flushes while everything succeeds."""
_PROMPT = 0.05
"""Seconds from a failure to its flush: what fails together is told together."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A run that finds out for the others whether its dependency is well again."""

    dependency: str
    since: datetime
    policy: BreakerPolicy

    async def succeeded(self, connection: Connection) -> None:
        """In the transaction that completes the run."""
        state = await probe_result(connection, self.dependency, ok=True, since=self.since, policy=self.policy)
        log.info("probe_succeeded", dependency=self.dependency, breaker=state)

    async def failed(self, connection: Connection, failure: Failure) -> None:
        """In the transaction that ends the run, behind its fence."""
        reason = f"A probe failed: {failure.code} {failure.message}"
        state = await probe_result(
            connection, self.dependency, ok=False, since=self.since, policy=self.policy, reason=reason
        )
        log.warning("probe_failed", dependency=self.dependency, breaker=state)


class Dependencies:
    def __init__(self, db: Database, health: DatabaseHealth, policy: BreakerPolicy) -> None:
        self._db = db
        self._health = health
        self._policy = policy
        self._counts: dict[str, tuple[int, int]] = {}
        self._first_at = 0.0
        self._some = asyncio.Event()
        self._failed = asyncio.Event()

    def note(self, dependency: str, *, ok: bool) -> None:
        """A run met the dependency. Document faults, releases and waits it asked for are not for here."""
        if not self._counts:
            self._first_at = asyncio.get_running_loop().time()
            self._some.set()
        calls, failures = self._counts.get(dependency, (0, 0))
        self._counts[dependency] = (calls + 1, failures if ok else failures + 1)
        if not ok:
            self._failed.set()

    def probe(self, kind: JobKind, lease: Lease) -> Probe | None:
        if kind.dependency is None or lease.probe is None:
            return None
        return Probe(kind.dependency, lease.probe, self._policy)

    async def held_for(self, connection: Connection, dependency: str) -> float | None:
        """How long the dependency's breaker keeps a job away that was let down by it; none if it is closed."""
        return await held_for(connection, dependency, self._policy)

    async def run(self) -> None:
        """For ever: tell the breakers."""
        while True:
            await self._some.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CALM):
                    await self._failed.wait()
                    await asyncio.sleep(_PROMPT)
            self._some.clear()
            self._failed.clear()
            await self.flush()

    async def flush(self) -> None:
        """Tell them what they have not been told yet."""
        counts, self._counts = self._counts, {}
        first_at = self._first_at
        if counts:
            await self._health.persist(lambda: self._write(counts, first_at))

    async def _write(self, counts: dict[str, tuple[int, int]], first_at: float) -> None:
        if asyncio.get_running_loop().time() - first_at > self._policy.window:
            return  # the database was away for so long that this is history
        async with self._db.hot() as connection:
            flat = sorted((name, calls, failures) for name, (calls, failures) in counts.items())
            for name in await record(connection, flat, self._policy):
                log.warning("breaker_opened", dependency=name)
