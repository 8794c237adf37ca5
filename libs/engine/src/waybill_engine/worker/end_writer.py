"""Writes how a run ended, unless it simply succeeded (`completer`): a failure, a retry, a release, a probe's success.

Each is written at once and alone, until the database has taken it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from waybill.db.database import Connection
from waybill.errors import Code, DatabaseUnavailable, LeaseLost
from waybill.failures import Failure, classify
from waybill.telemetry.metrics import LEASES_LOST
from waybill_engine import counts_of_jobs
from waybill_engine.claim import ClaimedJob
from waybill_engine.context import JobContext, Tools
from waybill_engine.finish import RunOutcome, judge, settle, succeed
from waybill_engine.kinds import JobKind
from waybill_engine.let_downs import settle_let_down
from waybill_engine.models import State
from waybill_engine.worker.database_health import DatabaseHealth

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class EndWriter:
    def __init__(
        self, tools: Tools, health: DatabaseHealth, on_finished: Callable[[Sequence[ClaimedJob], State], None]
    ) -> None:
        self._tools = tools
        self._health = health
        self._on_finished = on_finished
        # One at a time, so that claims go on while an end of a run waits for a lock.
        self._turn = asyncio.Semaphore(1)

    async def write(
        self, job: JobContext, kind: JobKind, outcome: RunOutcome, let_down: Failure | None, started: float
    ) -> None:
        """Write an outcome. `let_down` is how a dependency failed, or who asked us to wait, if that ended the run."""
        claimed = job.claimed
        repeated = outcome.code == claimed.last_error == Code.DB_UNAVAILABLE
        if repeated and await self._database_was_well(started):
            failure = replace(classify(DatabaseUnavailable(outcome.message)), charged=True)
            outcome = judge(claimed, failure, kind.retry)
        await self._health.persist(lambda: self._write(claimed, kind, outcome, let_down))

    async def _database_was_well(self, started: float) -> bool:
        """Whether only this handler had trouble with the database. Twice in a row, that is its own fault."""
        await asyncio.sleep(1.0)  # the other loops may notice an outage a moment later
        return self._health.well_for > asyncio.get_running_loop().time() - started

    async def _write(self, claimed: ClaimedJob, kind: JobKind, outcome: RunOutcome, let_down: Failure | None) -> None:
        async with self._turn, self._tools.db.hot() as connection:
            if let_down is not None:
                state = await self._write_let_down(connection, claimed, kind, let_down)
            else:
                end = (claimed.id, claimed.token, outcome)
                state = (await settle(connection, claimed.worker_id, [end])).get(claimed.id)
        if state is None:
            _refused(claimed, outcome.event)
            return
        counts_of_jobs.failed(claimed, outcome)
        if state.final:
            self._on_finished([claimed], state)

    async def _write_let_down(
        self, connection: Connection, claimed: ClaimedJob, kind: JobKind, failure: Failure
    ) -> State | None:
        """Write that a dependency failed or asked us to wait; whether that costs an attempt is decided there."""
        policy = self._tools.dependencies.policy
        try:
            return await settle_let_down(connection, claimed, failure, kind.blamed(failure), kind.retry, policy)
        except LeaseLost:
            return None

    async def write_probe(self, job: JobContext) -> None:
        """Write a probe's success at once, not in a batch: it may start everything that waits."""
        await self._health.persist(lambda: self._write_probe(job))

    async def _write_probe(self, job: JobContext) -> None:
        claimed = job.claimed
        fenced = [(claimed.id, claimed.token)]
        async with self._turn, self._tools.db.hot() as connection, connection.transaction():
            done = await succeed(connection, claimed.worker_id, fenced)
            if done and job.probe is not None:
                await job.probe.succeeded(connection, job.used)
        if done:
            self._on_finished([claimed], State.SUCCEEDED)
        else:
            _refused(claimed, "succeeded")


def _refused(claimed: ClaimedJob, end: str) -> None:
    LEASES_LOST.inc()
    log.warning("end_refused", job_id=str(claimed.id), lease_token=claimed.token, end=end)
