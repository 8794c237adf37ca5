"""One run of one job: the handler, its time limit, the ways it can be stopped, and what is written about its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import structlog

from waybill.db.database import Connection
from waybill.errors import Cancelled, Code, DatabaseUnavailable, Failure, LeaseLost, TimeLimitExceeded, classify
from waybill.log import enter_job
from waybill_engine import Lease
from waybill_engine.context import JobContext, Tools
from waybill_engine.finish import Outcome, cancelled, judge, released, settle, succeed
from waybill_engine.lease import fence
from waybill_engine.registry import Handler
from waybill_engine.worker.database_health import DatabaseHealth

log: structlog.stdlib.BoundLogger = structlog.get_logger()

STUBBORN = "stubborn"
"""What the task of a handler that ignores its cancellation is called."""

STUBBORN_AFTER = 5.0
"""Seconds a handler gets to honour its cancellation. Then the worker goes on without it."""


class Stop(Enum):
    """Why a run was stopped from outside."""

    TIME_LIMIT = "time limit"
    CANCELLED = "cancelled"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease lost"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all runs of a worker have in common."""

    health: DatabaseHealth
    ends: asyncio.Semaphore
    """However many runs end at once, so many write it at a time."""
    loop: asyncio.AbstractEventLoop
    on_success: Callable[[Lease], None]
    """Called when a run ended well and has yet to be written."""
    on_end: Callable[[Run], None]
    """Called exactly once, when the worker may reuse the slot."""


class Run:
    """A handler at work."""

    __slots__ = (
        "_around",
        "_handler",
        "_job",
        "_let_down",
        "_settling",
        "_stop",
        "_stubborn",
        "_task",
        "_tools",
        "deadline",
        "ending",
        "lease",
        "started",
    )

    def __init__(self, handler: Handler, job: JobContext, tools: Tools, around: Surroundings) -> None:
        self.lease = lease = job.lease
        self.ending = False
        """Its end is being written: nobody else should judge it any more."""
        self._handler = handler
        self._job = job
        self._tools = tools
        self._around = around
        self._let_down: Failure | None = None
        """How the dependency failed, if that is what ended the run."""
        self._stop: Stop | None = None
        self.started = started = around.loop.time()
        self.deadline = started + lease.time_limit
        """When its time is up. The bench watches it: a timer for each run would cost more than the run."""
        self._stubborn: asyncio.TimerHandle | None = None
        self._settling: asyncio.Task[None] | None = None
        # Named, because making up a name for a task costs as much as the rest of this.
        self._task = asyncio.Task(self._run(), loop=around.loop, name=lease.kind)

    @property
    def _dependency(self) -> str | None:
        return self._handler.kind.dependency

    @property
    def written(self) -> bool:
        """Its end is in the database already, not in a batch to come."""
        return self._settling is not None or self._job.completed

    @property
    def completed(self) -> bool:
        """It has committed its completion; the handler may still be tidying up."""
        return self._job.completed

    def stop(self, why: Stop) -> None:
        """Cancel the handler. The first reason counts, except that a lost lease ends all further writing."""
        if self.ending:
            return
        if self._stop is None or why is Stop.LEASE_LOST:
            self._stop = why
        self._task.cancel()
        if self._stubborn is None:
            self._stubborn = asyncio.get_running_loop().call_later(STUBBORN_AFTER, self._abandon)

    async def _run(self) -> None:
        lease = self.lease
        enter_job(self._job)
        try:
            await self._handler.run(lease.payload, self._job)
        except asyncio.CancelledError as error:
            if self.ending:
                return
            self._close(self._outcome_of_stop(error))
        except LeaseLost:
            self._close(None)
        except BaseException as error:  # noqa: BLE001 - even sys.exit() in a handler ends its run, not the worker
            self._close(self._outcome_of_failure(error))
        else:
            if self.ending:
                log.warning("stubborn_handler_returned", kind=lease.kind)
                return
            if self._stop is None or self._job.completed:
                self._succeeded()
            else:  # it swallowed its cancellation; returning is no success then
                self._close(self._outcome_of_stop(asyncio.CancelledError()))
        if self._settling is not None:
            await self._settling

    def _succeeded(self) -> None:
        self.ending = True
        dependency = self._handler.kind.dependency
        if dependency is not None:
            if self._job.probe is not None and not self._job.completed:
                self._settling = asyncio.get_running_loop().create_task(self._settle_probe())
                return
            self._note_success(dependency)
        if not self._job.completed:
            self._around.on_success(self.lease)
        self._release_slot()

    def _note_success(self, dependency: str) -> None:
        # A probe's has been counted with its completion: it decides, and once.
        if self._job.probe is None:
            self._tools.dependencies.note(dependency, ok=True)

    def _outcome_of_stop(self, error: BaseException) -> Outcome | None:
        if self._stop is Stop.LEASE_LOST:
            return None
        if self._stop is Stop.CANCELLED:
            return cancelled(classify(Cancelled()))
        if self._stop is Stop.SHUTDOWN:
            return released("The worker is shutting down.")
        if self._stop is Stop.TIME_LIMIT:
            limit = f"The job took longer than its limit of {self.lease.time_limit:g} s."
            return self._judged(classify(TimeLimitExceeded(limit)))
        return self._judged(classify(error))  # the handler cancelled itself: its own mistake

    def _outcome_of_failure(self, error: BaseException) -> Outcome | None:
        if self._stop is not None:
            # Handlers may answer a cancellation with an error of their own; the reason for it still counts.
            return self._outcome_of_stop(error)
        failure = classify(error)
        log.warning("job_failed", code=failure.code.value, error=failure.message, exc_info=error)
        if self._dependency is not None and failure.of_dependency and not self._job.completed:
            self._let_down = failure
            if self._job.probe is None:
                self._tools.dependencies.note(self._dependency, ok=False)
        return self._judged(failure)

    def _judged(self, failure: Failure, held_for: float | None = None) -> Outcome:
        return judge(self.lease, failure, self._handler.kind.retry, held_for=held_for)

    def _abandon(self) -> None:
        """The handler ignores its cancellation. Whatever it still does, the fence makes it void."""
        if self.ending:
            return
        enter_job(self._job)  # a timer has the context of whoever set it
        log.error("handler_ignores_cancellation", kind=self.lease.kind, job_id=str(self.lease.id))
        self._task.set_name(STUBBORN)
        self._close(self._outcome_of_stop(asyncio.CancelledError()))

    def _close(self, outcome: Outcome | None) -> None:
        if self.ending:
            return
        self.ending = True
        if self._job.completed:
            if self._dependency is not None:
                self._note_success(self._dependency)
            self._release_slot()  # it committed its completion before it was stopped
        elif outcome is None:
            log.warning("lease_lost", job_id=str(self.lease.id), lease_token=self.lease.token)
            self._release_slot()
        else:
            self._settling = asyncio.get_running_loop().create_task(self._settle(outcome))

    async def _settle(self, outcome: Outcome) -> None:
        try:
            repeated = outcome.code == self.lease.last_error == Code.DB_UNAVAILABLE
            if repeated and await self._database_was_well():
                failure = replace(classify(DatabaseUnavailable(outcome.message)), charged=True)
                outcome = self._judged(failure)
            await self._around.health.persist(lambda: self._write(outcome))
        finally:
            self._release_slot()

    async def _database_was_well(self) -> bool:
        """Whether only this handler had trouble with the database. Twice in a row it is its own, and is charged."""
        await asyncio.sleep(1.0)  # the others may hear of an outage a moment later
        return self._around.health.well_for > asyncio.get_running_loop().time() - self.started

    async def _settle_probe(self) -> None:
        """A probe's success is not buffered: it may start everything that waits."""
        try:
            await self._around.health.persist(self._write_probe)
        finally:
            self._release_slot()

    async def _write_probe(self) -> None:
        fenced = [(self.lease.id, self.lease.token)]
        async with self._around.ends, self._tools.db.hot() as connection, connection.transaction():
            done = await succeed(connection, self._tools.worker_id, fenced)
            if done and self._job.probe is not None:
                await self._job.probe.succeeded(connection)
        if not done:
            self._refused("succeeded")

    async def _write(self, outcome: Outcome) -> None:
        async with self._around.ends, self._tools.db.hot() as connection:
            if self._let_down is not None and self._dependency is not None:
                written = await self._write_let_down(connection, self._let_down, self._dependency)
            else:
                written = await self._write_end(connection, outcome)
        if not written:
            self._refused(outcome.event)

    async def _write_let_down(self, connection: Connection, failure: Failure, dependency: str) -> bool:
        """The dependency failed: whether that costs an attempt is for its breaker to say, as it stands now."""
        try:
            async with connection.transaction():
                if self._job.probe is not None:
                    await fence(connection, self.lease.id, self.lease.token)
                    await self._job.probe.failed(connection, failure)
                held_for = await self._tools.dependencies.held_for(connection, dependency)
                return await self._write_end(connection, self._judged(failure, held_for))
        except LeaseLost:
            return False

    async def _write_end(self, connection: Connection, outcome: Outcome) -> bool:
        return bool(await settle(connection, self._tools.worker_id, [(self.lease.id, self.lease.token, outcome)]))

    def _refused(self, end: str) -> None:
        log.warning("end_refused", job_id=str(self.lease.id), lease_token=self.lease.token, end=end)

    def _release_slot(self) -> None:
        if self._stubborn is not None:
            self._stubborn.cancel()
        self._around.on_end(self)
