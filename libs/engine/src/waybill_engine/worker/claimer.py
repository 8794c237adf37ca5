"""Claims jobs: as many as there are free slots, plus a few milliseconds of work when jobs are tiny.

Claiming more would starve other workers and hurt at shutdown. The claimer takes from the lanes that the fair share
knows. Announcements name new lanes, and the lane finder's slow polls find those that nobody announced.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Iterable

import structlog

from waybill.db import Database
from waybill_engine.breaker import BreakerPolicy
from waybill_engine.claim import ClaimedJob, claim
from waybill_engine.fair_share import FairShare
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.lane_finder import LaneFinder
from waybill_engine.worker.slots import Slots

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_AHEAD = 0.025
"""Seconds of work to claim ahead: about as long as the next claim takes."""
_MOST_AHEAD = 2000
_MOST_BYTES_AHEAD = 4 * 1024 * 1024
"""Bytes of payloads to claim ahead, as far as they can be foreseen."""
_MOST_UNWRITTEN = 5000
"""With more unwritten completions than this, no more jobs are claimed."""
_SUSPECT_AGAIN = 0.05
"""Seconds after which to try again for a suspect that another worker was claiming."""


class Claimer:
    def __init__(
        self,
        db: Database,
        health: DatabaseHealth,
        slots: Slots,
        fair_share: FairShare,
        policy: BreakerPolicy,
        *,
        poll_interval: float,
        suspects: LaneFinder | None = None,
        on_forgotten: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """With `suspects`, it claims suspects of a crash and ends when none is left.

        `on_forgotten` is called when a claim brings a job that this worker runs already: the database has forgotten
        the first claim (a failover to a standby that lagged behind), and no fence could tell the two runs apart.
        """
        self._db = db
        self._health = health
        self._slots = slots
        self._fair_share = fair_share
        self._policy = policy
        self._poll_interval = poll_interval
        self._suspects = suspects
        self._on_forgotten = on_forgotten
        self._wake = asyncio.Event()
        self._stopping = False
        self._forgotten = False

    def wake(self) -> None:
        """There may be jobs to claim, or slots for them."""
        self._wake.set()

    def runs_ended(self, jobs: Iterable[ClaimedJob]) -> None:
        """Ends of these runs were written, so caps that were full may have room."""
        self._fair_share.gates.reopen_caps(jobs)
        self._wake.set()

    def stop(self) -> None:
        """Claim no more. A claim that is under way is finished: its answer says which jobs have to be released."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Claim for ever; with suspects, until none is left."""
        loop = asyncio.get_running_loop()
        while not self._stopping:
            self._wake.clear()
            wanted = self._wanted()
            patience = self._poll_interval  # without a free slot, until there is one
            if wanted > 0:
                if self._suspects is not None:
                    await self._suspects.look()
                    if not len(self._fair_share):
                        return
                now = loop.time()  # one for both questions: a gate that opens between them would be missed by both
                if self._fair_share.any_open(now):
                    if not await self._claim(wanted) and self._suspects is not None:
                        await asyncio.sleep(_SUSPECT_AGAIN)
                    continue
                opening = self._fair_share.next_opening(now)
                if opening is not None:
                    patience = min(patience, opening - now)
            await self._woken_within(patience)

    async def _woken_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _wanted(self) -> int:
        slots = self._slots
        if len(slots.completer) > _MOST_UNWRITTEN:
            return 0
        ahead = int(slots.concurrency * _AHEAD / max(slots.typical, 1e-6))
        ahead = 0 if self._suspects else min(ahead, _MOST_AHEAD, int(_MOST_BYTES_AHEAD / slots.typical_bytes))
        free = slots.concurrency + ahead - len(slots)
        # Topping up job by job would cost a statement each, so wait until half of what was claimed ahead is used. Not
        # until all of it is: the rest lasts until the next claim is back.
        if free > ahead // 2 or len(slots) < slots.concurrency:
            return free
        slots.low = len(slots.waiting) // 2  # a good time to ask again, though runs may take longer or shorter
        return 0

    async def _claim(self, wanted: int) -> list[ClaimedJob]:
        async def ask() -> list[ClaimedJob]:
            async with self._db.hot() as connection:
                worker_id = self._slots.worker_id
                jobs = await claim(
                    connection,
                    worker_id,
                    self._fair_share,
                    wanted,
                    policy=self._policy,
                    isolated=self._suspects is not None,
                    clock=asyncio.get_running_loop().time,
                )
                if not self._db.pgbouncer:  # behind PgBouncer, the claim commits when the connection is returned
                    self._take(jobs, worker_id)
            if self._db.pgbouncer:
                self._take(jobs, worker_id)
            return jobs

        # After an outage the claim is repeated. If the first one had succeeded and only its answer was lost, the
        # heartbeat finds and releases its jobs.
        jobs = await self._health.persist(ask)
        if self._forgotten and self._on_forgotten is not None:
            self._forgotten = False
            await self._on_forgotten()
        return jobs

    def _take(self, jobs: list[ClaimedJob], worker_id: uuid.UUID) -> None:
        # If this worker was declared gone while the claim was on its way, the jobs are not ours any more.
        if worker_id != self._slots.worker_id:
            return
        if not self._slots.runs.keys().isdisjoint([job.id for job in jobs]):
            log.error("claims_forgotten", jobs=len(self._slots), hint="was the database restored or failed over?")
            self._forgotten = True
            return
        self._slots.take(jobs)
