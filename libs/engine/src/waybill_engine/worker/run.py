"""One run of one job: its handler, its time limit, the ways it can be stopped, and what its end means."""

from __future__ import annotations

import asyncio
import contextvars
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import structlog

from waybill.errors import Cancelled, LeaseLost, TimeLimitExceeded
from waybill.failures import Failure, classify
from waybill.log import enter_job, failure_fields
from waybill.log.exceptions import is_expected
from waybill.telemetry import spans
from waybill.telemetry.instruments import current_trace
from waybill.telemetry.metrics import LEASES_LOST
from waybill_engine.claim import ClaimedJob
from waybill_engine.context import JobContext, Tools
from waybill_engine.finish import RunOutcome, cancelled, judge, released
from waybill_engine.models import State
from waybill_engine.registry import Handler
from waybill_engine.snooze import Snooze
from waybill_engine.worker.end_writer import EndWriter
from waybill_engine.worker.run_chain import perform
from waybill_engine.worker.run_lines import SUCCESSES, run_fields
from waybill_engine.worker.run_spans import SUCCEEDED, note_outcome, traced

log: structlog.stdlib.BoundLogger = structlog.get_logger()

STUBBORN = "stubborn"
"""The name of a task whose handler ignores its cancellation."""

STUBBORN_AFTER = 5.0
"""Seconds that a handler gets to end after its cancellation. Then the worker goes on without it."""


class Stop(Enum):
    """Why a run was stopped from outside."""

    TIME_LIMIT = "time limit"
    CANCELLED = "cancelled"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease lost"


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """What all runs of a worker report to."""

    ends: EndWriter
    loop: asyncio.AbstractEventLoop
    context: contextvars.Context
    """What every task begins with, whoever happens to start it."""
    on_success: Callable[[ClaimedJob], None]
    """Called with a job that succeeded and whose completion has yet to be written."""
    on_finished: Callable[[Sequence[ClaimedJob], State], None]
    """Called with jobs that ended for good, after that was committed. The completer tells of those it writes."""
    on_end: Callable[[Run], None]
    """Called exactly once for each run, when its slot is free."""


_ONE_GO = 0.0002
"""Seconds for which runs follow one another in a task. Then the event loop gets its turn."""


class Run:
    """A handler at work."""

    __slots__ = (
        "_context",
        "_environment",
        "_handler",
        "_job",
        "_let_down",
        "_settling",
        "_span",
        "_stop",
        "_stubborn",
        "_task",
        "_tools",
        "chain_began",
        "claimed",
        "deadline",
        "ending",
        "next",
        "started",
        "waits",
    )

    def __init__(
        self, handler: Handler, job: JobContext, tools: Tools, environment: RunEnvironment, started: float
    ) -> None:
        self.claimed = claimed = job.claimed
        self.ending = False
        """Its end is being written, and nobody else may decide it any more."""
        self._handler = handler
        self._job = job
        self._tools = tools
        self._environment = environment
        self._let_down: Failure | None = None
        """How a dependency failed, or who asked us to wait, if that ended the run."""
        self._stop: Stop | None = None
        self.started = started
        self.deadline = started + claimed.time_limit
        """When its time is up. `Slots` watches it, because a timer for each run would cost more than the run."""
        self._stubborn: asyncio.TimerHandle | None = None
        self._settling: asyncio.Task[None] | None = None
        self._span: spans.Span | None = None
        self._task: asyncio.Task[None]
        self._context: contextvars.Context
        self.chain_began = math.inf
        """When the first run of its chain began."""
        self.next: Run | None = None
        """The run that follows in the same task."""
        self.waits = False
        """It has waited for something, so its task is not another's any more."""

    def start(self) -> None:
        """Run in a task of its own."""
        loop, context = self._environment.loop, self._environment.context.copy()
        # Named, because making up a name for a task costs as much as everything else here.
        self._task = asyncio.Task(perform(self), loop=loop, name=self.claimed.kind, context=context)

    def follow(self, run: Run) -> None:
        """Run in the task of another run, which has just ended."""
        self._task, self.chain_began = run._task, run.chain_began
        run.next = self

    def leaves_its_task(self, now: float) -> bool:
        """Whether its task is as it was before it, for another run to go on in. Ask it at its end."""
        return (
            not self.waits
            and now - self.chain_began < _ONE_GO
            and self._stop is None
            and not self._task.cancelling()
            and contextvars.copy_context() == self._context
        )

    @property
    def written(self) -> bool:
        """Its end is in the database already, not in a batch that is yet to be written."""
        return self._settling is not None or self._job.completed

    @property
    def completed(self) -> bool:
        """It has committed its completion. The handler may still be tidying up."""
        return self._job.completed

    def stop(self, why: Stop) -> None:
        """Cancel the handler. The first reason counts, except that a lost lease wins: nothing more may be written."""
        if self.ending:
            return
        if self._stop is None or why is Stop.LEASE_LOST:
            self._stop = why
        self._task.cancel()
        if self._stubborn is None:
            self._stubborn = asyncio.get_running_loop().call_later(STUBBORN_AFTER, self._abandon)

    def perform(self) -> Coroutine[Any, Any, None]:
        """The whole run. Call it in the task."""
        enter_job(self._job)
        if spans.on():
            self.waits = True  # its span, too, needs a task of its own
            return self._handle_traced()
        self._context = contextvars.copy_context()
        return self._handle()

    async def _handle_traced(self) -> None:
        with traced(self.claimed) as self._span:
            await self._handle()

    async def _handle(self) -> None:
        claimed = self.claimed
        try:
            await self._handler.run(claimed.payload, self._job)
        except asyncio.CancelledError as error:
            if self.ending:
                return
            self._close(self._outcome_of_stop(error))
        except LeaseLost:
            self._close(None)
        except Snooze as snooze:
            self._close(snooze.outcome if self._stop is None else self._outcome_of_stop(snooze))
        except BaseException as error:  # noqa: BLE001 - even sys.exit() in a handler ends its run, not the worker
            self._close(self._outcome_of_failure(error))
        else:
            if self.ending:
                log.warning("stubborn_handler_returned", kind=claimed.kind)
                return
            if self._stop is None or self._job.completed:
                self._succeeded()
            else:  # it swallowed its cancellation, so returning does not mean success
                self._close(self._outcome_of_stop(asyncio.CancelledError()))
        if self._settling is not None:
            await self._settling

    def _succeeded(self) -> None:
        self.ending = True
        SUCCESSES.log(self.claimed, self._note_time())
        if self._span is not None:
            self._span.set(SUCCEEDED)
        if self._handler.kind.dependencies:
            self._note_success()
            if self._job.probe is not None and not self._job.completed:
                self._settling = asyncio.get_running_loop().create_task(self._settle_probe())
                return
        if self._job.completed:
            self._environment.on_finished([self.claimed], State.SUCCEEDED)
        else:
            self._environment.on_success(self.claimed)
        self._release_slot()

    def _note_time(self) -> float:
        """How long it took, up to now. Not by the loop's clock, which stands still while a handler keeps the loop."""
        now = time.monotonic()
        self.claimed.took = now - self.started
        if spans.on():
            self.claimed.trace = current_trace()
        return now

    def _note_success(self) -> None:
        for name in self._job.used:
            # A probe's success is counted with its completion, because it decides about the breaker.
            if self.claimed.probes is None or name not in self.claimed.probes:
                self._tools.dependencies.note(name, ok=True)

    def _outcome_of_stop(self, error: BaseException) -> RunOutcome | None:
        if self._stop is Stop.LEASE_LOST:
            return None
        if self._stop is Stop.CANCELLED:
            return cancelled(classify(Cancelled()))
        if self._stop is Stop.SHUTDOWN:
            return released("The worker is shutting down.")
        if self._stop is Stop.TIME_LIMIT:
            limit = f"The job took longer than its limit of {self.claimed.time_limit:g} s."
            return self._judged(classify(TimeLimitExceeded(limit)))
        return self._judged(classify(error))  # the handler cancelled itself, which is its own mistake

    def _outcome_of_failure(self, error: BaseException) -> RunOutcome | None:
        if self._stop is not None:
            # A handler may answer its cancellation with an error of its own; the reason for the stop still counts.
            return self._outcome_of_stop(error)
        failure = classify(error)
        self._log_failure(error, failure)
        if not self._job.completed:
            self._note_failure(failure)
        return self._judged(failure)

    def _log_failure(self, error: BaseException, failure: Failure) -> None:
        """One line without a traceback, unless the handler has a bug: failures of the taxonomy are everyday life."""
        self._note_time()
        of_run = run_fields(self.claimed)
        if not is_expected(error):
            log.error("job_failed", **of_run, code=failure.code.value, exc_info=error)
        elif failure.retry_after is not None:
            log.info("job_waits", **of_run, **failure_fields(failure))
        else:
            log.warning("job_failed", **of_run, **failure_fields(failure))

    def _note_failure(self, failure: Failure) -> None:
        dependency = self._handler.kind.blamed(failure)
        if failure.retryable and (dependency is not None or failure.retry_after is not None):
            self._let_down = failure
        probed = self.claimed.probes is not None and dependency in self.claimed.probes
        if dependency is not None and failure.of_dependency and not probed:
            fresh = self.claimed.last_error is None
            self._tools.dependencies.note(dependency, ok=False, fresh=fresh, away=failure.away)

    def _judged(self, failure: Failure) -> RunOutcome:
        return judge(self.claimed, failure, self._handler.kind.retry)

    def _abandon(self) -> None:
        """Give up on a handler that ignores its cancellation. The fence voids whatever it still does."""
        if self.ending:
            return
        enter_job(self._job)  # a timer runs in the context of the code that set it
        log.error("handler_ignores_cancellation", kind=self.claimed.kind, job_id=str(self.claimed.id))
        self._task.set_name(STUBBORN)
        self._close(self._outcome_of_stop(asyncio.CancelledError()))
        if self._span is not None:
            self._span.end()

    def _close(self, outcome: RunOutcome | None) -> None:
        if self.ending:
            return
        self.ending = True
        self._note_time()
        if self._span is not None:
            note_outcome(self._span, outcome, completed=self._job.completed, let_down=self._let_down is not None)
        if self._job.completed:
            self._note_success()
            self._environment.on_finished([self.claimed], State.SUCCEEDED)
            self._release_slot()  # it committed its completion before it was stopped
        elif outcome is None:
            LEASES_LOST.inc()
            log.warning("lease_lost", job_id=str(self.claimed.id), lease_token=self.claimed.token)
            self._release_slot()
        else:
            self._settling = asyncio.get_running_loop().create_task(self._settle(outcome))

    async def _settle(self, outcome: RunOutcome) -> None:
        try:
            await self._environment.ends.write(self._job, self._handler.kind, outcome, self._let_down, self.started)
        finally:
            self._release_slot()

    async def _settle_probe(self) -> None:
        try:
            await self._environment.ends.write_probe(self._job)
        finally:
            self._release_slot()

    def _release_slot(self) -> None:
        if self._stubborn is not None:
            self._stubborn.cancel()
        self._environment.on_end(self)
