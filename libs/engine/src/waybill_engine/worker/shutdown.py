"""Stops a worker without a loss: it claims no more, its runs get the grace period, and what is left is released."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from waybill_engine.worker.claimer import Claimer
from waybill_engine.worker.isolation import Isolation
from waybill_engine.worker.registration import Registration
from waybill_engine.worker.run import STUBBORN_AFTER, Stop
from waybill_engine.worker.slots import Slots

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_LAST_WORDS = 10.0
"""Seconds that the final writes get when the database is down at shutdown."""


class Shutdown:
    def __init__(
        self,
        grace: float,
        slots: Slots,
        claimer: Claimer,
        isolation: Isolation,
        registration: Registration,
        last_words: Sequence[Callable[[], Awaitable[None]]],
    ) -> None:
        """`last_words` are written when nothing runs any more, in their order."""
        self.begun = asyncio.Event()
        self._hurry = asyncio.Event()
        self._grace = grace
        self._slots = slots
        self._claimer = claimer
        self._isolation = isolation
        self._registration = registration
        self._last_words = last_words

    def begin(self) -> None:
        """The second call stops waiting for running jobs."""
        if self.begun.is_set():
            self._hurry.set()
        self.begun.set()

    async def run(self, claiming: list[asyncio.Task[None]]) -> None:
        """Shut down. `claiming` are the tasks that bring in jobs, the claimer's first."""
        log.info("worker_stopping", running=len(self._slots.runs), grace=self._grace)
        self._claimer.stop()
        isolation = asyncio.create_task(self._isolation.stop())
        await self._bounded(self._stop_claiming(claiming))
        if not await self._wait_for_runs(self._grace):
            self._slots.stop_all(Stop.SHUTDOWN)
            await self._wait_for_runs(STUBBORN_AFTER + _LAST_WORDS)
        await isolation
        await self._bounded(self._sign_off())
        log.info("worker_stopped", worker=self._registration.info.name)

    async def _stop_claiming(self, claiming: list[asyncio.Task[None]]) -> None:
        await asyncio.wait([claiming[0]], timeout=_LAST_WORDS / 2)
        for task in claiming:
            task.cancel()
        await asyncio.gather(*claiming, return_exceptions=True)
        await self._slots.give_back_waiting()
        await self._registration.drain()

    async def _wait_for_runs(self, seconds: float) -> bool:
        emptied = asyncio.create_task(self._slots.emptied())
        hurry = asyncio.create_task(self._hurry.wait())
        done, _ = await asyncio.wait([emptied, hurry], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in (emptied, hurry):
            task.cancel()
        await asyncio.gather(emptied, hurry, return_exceptions=True)
        return emptied in done

    async def _sign_off(self) -> None:
        for write in self._last_words:
            await write()
        await self._registration.stop()

    async def _bounded(self, writes: Awaitable[None]) -> None:
        jobs = len(self._slots) + len(self._slots.completer)
        try:
            # While the database is down, waiting for it is best: what cannot be written would count as a crash.
            async with asyncio.timeout(max(_LAST_WORDS, self._grace) if jobs else 1.0):
                await writes
        except TimeoutError:
            log.warning("shutdown_without_database", jobs=jobs, hint="these jobs are rescued when the lease ends")
