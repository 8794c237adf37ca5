"""Counts dependency successes and failures and reports them to the breakers.

Counts are reported together, once a second while everything succeeds and at once when something fails. A count that is
reported twice because an answer got lost, or never because the worker died, hardly matters. A probe's end matters, so
it is written with the end of its run.
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
from waybill_engine.breaker import BreakerPolicy, blocked_for, probe_result, record
from waybill_engine.claim import ClaimedJob
from waybill_engine.kinds import JobKind
from waybill_engine.worker.database_health import DatabaseHealth

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_CALM = 1.0
"""Seconds between reports while everything succeeds."""
_PROMPT = 0.05
"""Seconds from a failure to its report, so that calls that fail together are reported together."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A run that finds out whether its dependency works again."""

    dependency: str
    since: datetime
    policy: BreakerPolicy

    async def succeeded(self, connection: Connection) -> None:
        """Report success, in the transaction that completes the run."""
        state = await probe_result(connection, self.dependency, ok=True, since=self.since, policy=self.policy)
        log.info("probe_succeeded", dependency=self.dependency, breaker=state)

    async def failed(self, connection: Connection, failure: Failure) -> None:
        """Report failure, in the transaction that ends the run, after its fence."""
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
        """Count one call. Faults of the input, releases and waits that the dependency asked for do not count."""
        if not self._counts:
            self._first_at = asyncio.get_running_loop().time()
            self._some.set()
        calls, failures = self._counts.get(dependency, (0, 0))
        self._counts[dependency] = (calls + 1, failures if ok else failures + 1)
        if not ok:
            self._failed.set()

    def probe(self, kind: JobKind, job: ClaimedJob) -> Probe | None:
        if kind.dependency is None or job.probe is None:
            return None
        return Probe(kind.dependency, job.probe, self._policy)

    async def blocked_for(self, connection: Connection, dependency: str) -> float | None:
        """Seconds that the breaker blocks a job whose dependency failed; None if it is closed."""
        return await blocked_for(connection, dependency, self._policy)

    async def run(self) -> None:
        """For ever: report to the breakers."""
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
        """Report what was not reported yet."""
        counts, self._counts = self._counts, {}
        first_at = self._first_at
        if counts:
            await self._health.persist(lambda: self._write(counts, first_at))

    async def _write(self, counts: dict[str, tuple[int, int]], first_at: float) -> None:
        if asyncio.get_running_loop().time() - first_at > self._policy.window:
            return  # the database was down for so long that these counts are too old
        async with self._db.hot() as connection:
            flat = sorted((name, calls, failures) for name, (calls, failures) in counts.items())
            for name in await record(connection, flat, self._policy):
                log.warning("breaker_opened", dependency=name)
