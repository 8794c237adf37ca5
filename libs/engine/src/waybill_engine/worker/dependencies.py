"""Counts dependency successes and failures and reports them to the breakers.

Counts are reported together, once a second while everything succeeds and at once when something fails. A count that is
reported twice because an answer got lost, or never because the worker died, hardly matters. A probe's end matters, so
it is written with the end of its run.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog

from waybill.db import Database
from waybill.db.database import Connection
from waybill_engine.breaker import BreakerPolicy, probe_result
from waybill_engine.breaker_counts import CallCount, record
from waybill_engine.claim import ClaimedJob
from waybill_engine.worker.database_health import DatabaseHealth

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_CALM = 1.0
"""Seconds between reports while everything succeeds."""
_PROMPT = 0.05
"""Seconds from a failure to its report, so that calls that fail together are reported together."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A run that finds out whether dependencies work again."""

    periods: Mapping[str, datetime]
    """The dependencies, and when the half-open period of each one's breaker began."""
    policy: BreakerPolicy

    async def succeeded(self, connection: Connection, used: Collection[str]) -> None:
        """Report success for the dependencies that the run used, in the transaction that completes it."""
        for name in sorted(self.periods):  # all probes lock breakers in this order
            if name in used:
                since = self.periods[name]
                state = await probe_result(connection, name, ok=True, since=since, policy=self.policy)
                log.info("probe_succeeded", dependency=name, breaker=state)


class Dependencies:
    def __init__(self, db: Database, health: DatabaseHealth, policy: BreakerPolicy) -> None:
        self._db = db
        self._health = health
        self._policy = policy
        self._counts: dict[str, CallCount] = {}
        self._succeeded_at: dict[str, float] = {}
        self._first_at = 0.0
        self._some = asyncio.Event()
        self._failed = asyncio.Event()

    def note(self, dependency: str, *, ok: bool, fresh: bool = True, away: bool = False) -> None:
        """Count one call. Faults of the input, releases and waits that the dependency asked for do not count.

        `fresh` says that the job's last run had not failed, `away` that the dependency could not even be reached.
        """
        now = asyncio.get_running_loop().time()
        if not self._counts:
            self._first_at = now
            self._some.set()
        count = self._counts.get(dependency)
        if count is None:
            count = self._counts[dependency] = CallCount(dependency)
        count.add(ok=ok, fresh=fresh, away=away)
        if ok:
            self._succeeded_at[dependency] = now
        else:
            self._failed.set()

    def probe(self, job: ClaimedJob) -> Probe | None:
        return None if job.probes is None else Probe(job.probes, self._policy)

    @property
    def policy(self) -> BreakerPolicy:
        return self._policy

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

    async def _write(self, counts: dict[str, CallCount], first_at: float) -> None:
        now = asyncio.get_running_loop().time()
        if now - first_at > self._policy.window:
            return  # the database was down for so long that these counts are too old
        for name, count in counts.items():
            count.succeeded_ago = now - self._succeeded_at.get(name, now)
        async with self._db.hot() as connection:
            for name in await record(connection, list(counts.values()), self._policy):
                log.warning("breaker_opened", dependency=name)
