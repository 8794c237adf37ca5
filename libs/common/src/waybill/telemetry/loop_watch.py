"""Watches the event loop: how late it runs what is due, and when it last turned."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from waybill import background_tasks
from waybill.telemetry.metrics import LOOP_LAG

_EVERY = 0.5


class LoopWatch:
    def __init__(self) -> None:
        self.turned_at = time.monotonic()

    @property
    def still_for(self) -> float:
        """Seconds since the loop last ran us. Other threads may ask."""
        return time.monotonic() - self.turned_at

    async def run(self) -> None:
        """For ever: measure."""
        while True:
            due = time.monotonic() + _EVERY
            await asyncio.sleep(_EVERY)
            self.turned_at = now = time.monotonic()
            LOOP_LAG.observe(max(now - due, 0.0))

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[LoopWatch]:
        async with background_tasks.running(self.run(), "loop watch"):
            yield self
