"""What an owner is told beyond the bare rows: how long a conversion may take, whether the converter is paused, and
where the job's trace is.

The first two are cached for a while, for all owners together.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from waybill.changes import BLIND, BREAKERS
from waybill.messages import msg
from waybill.telemetry.trace_links import NO_LINKS, TraceLinks
from waybill_convert.estimates import SAMPLES, Estimates
from waybill_convert.kinds import DEPENDENCIES
from waybill_convert.repository import durations
from waybill_convert.views import ConversionView, Pause, view
from waybill_engine import breaker_control

if TYPE_CHECKING:
    from waybill.changes import Subscriptions
    from waybill.db import Database

_ESTIMATES_LAST = 30.0
_PAUSE_LASTS = 10.0


class Outlook:
    def __init__(self, database: Database, changes: Subscriptions, trace_links: TraceLinks = NO_LINKS) -> None:
        self._database = database
        self._changes = changes
        self._trace_links = trace_links
        self._estimates = Estimates(())
        self._estimates_until = 0.0
        self.pause: Pause | None = None
        self._pause_version = -1
        self._pause_until = 0.0
        self._refreshing = asyncio.Lock()

    def view(self, row: Any) -> ConversionView:
        return view(row, self._estimates, self.pause, self._trace_links)

    async def refresh(self) -> None:
        """Read the breakers and recent durations again, if what we have is too old."""
        now = time.monotonic()
        version = self._changes.version(BREAKERS)
        if now < self._estimates_until and now < self._pause_until and version == self._pause_version:
            return
        async with self._refreshing:
            now = time.monotonic()
            version = self._changes.version(BREAKERS)
            async with self._database.hot() as connection:
                if now >= self._pause_until or version != self._pause_version:
                    self.pause = _pause(await breaker_control.not_closed(connection, DEPENDENCIES))
                    self._pause_version = version
                    self._pause_until = now + (_PAUSE_LASTS if self._changes.listening else BLIND)
                if now >= self._estimates_until:
                    self._estimates = Estimates(
                        await durations.samples(connection, SAMPLES), await durations.noted(connection)
                    )
                    self._estimates_until = now + _ESTIMATES_LAST


def _pause(breaker: Any | None) -> Pause | None:
    return None if breaker is None else Pause(msg("convert.paused"), breaker["open_until"])
