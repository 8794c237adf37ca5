"""Whether the database answers. While Postgres is down, the worker's loops wait for it, and no job is blamed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from waybill.failures import is_passing_trouble

T = TypeVar("T")
log: structlog.stdlib.BoundLogger = structlog.get_logger()


class DatabaseHealth:
    """When this worker last had trouble with the database, by its own monotonic clock."""

    def __init__(self) -> None:
        # A worker that has just started does not know how long the database has been up.
        self._trouble_at = asyncio.get_running_loop().time()
        self._down = False

    @property
    def down(self) -> bool:
        """Whether the last call failed."""
        return self._down

    @property
    def well_for(self) -> float:
        return 0.0 if self._down else asyncio.get_running_loop().time() - self._trouble_at

    def trouble(self, error: BaseException) -> None:
        if not self._down:
            log.warning("database_lost", error=str(error))
        self._down = True
        self._trouble_at = asyncio.get_running_loop().time()

    def fine(self) -> None:
        if self._down:
            log.info("database_back")
            self._trouble_at = asyncio.get_running_loop().time()
        self._down = False

    async def persist(self, call: Callable[[], Awaitable[T]], *, every: float = 0.5) -> T:
        """Repeat `call` until the database answers it. Only for calls that may be repeated."""
        while True:
            answers = await self._try(call, every)
            if answers:
                return answers[0]

    async def attempt(self, call: Callable[[], Awaitable[T]], *, pause: float) -> T | None:
        """Make one `call`. None, after a pause, if the database did not answer."""
        answers = await self._try(call, pause)
        return answers[0] if answers else None

    async def _try(self, call: Callable[[], Awaitable[T]], pause: float) -> list[T]:
        """The answer, if there is one."""
        try:
            answer = await call()
        except Exception as error:
            if not is_passing_trouble(error):
                raise
            self.trouble(error)
            await asyncio.sleep(pause)
            return []
        self.fine()
        return [answer]
