"""Runs the relay when it is asked for, for as long as there are many announcements; see `waybill_engine.relay`."""

from __future__ import annotations

import asyncio

import structlog

from waybill.db import Database
from waybill.db.database import Connection
from waybill_engine.relay import hand_over, pass_on, switch_off, switch_on
from waybill_engine.worker.database_health import DatabaseHealth

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_EVERY = 0.005
"""Seconds between two looks for announcements: what they wait at most while the relay is on."""

_WINDOW = 0.25
"""Seconds over which announcements are counted."""

_FEW = 25
"""With fewer announcements in a window, their own transactions can send them."""

_SLOW = 0.05
"""Seconds. If passing on takes longer, the table is full of rows that vacuum cannot remove, because of a long
transaction. Then everybody announces for themselves."""


class Announcer:
    def __init__(self, db: Database, health: DatabaseHealth) -> None:
        self._db = db
        self._health = health
        self._requested = asyncio.Event()

    def request(self) -> None:
        """Somebody who announced something was not alone."""
        self._requested.set()

    async def run(self) -> None:
        while True:
            await self._requested.wait()
            self._requested.clear()
            await self._health.persist(self._relay)

    async def _relay(self) -> None:
        connection = await self._db.open_connection("relay")
        try:
            if not await switch_on(connection):
                return
            log.debug("relay_on")
            try:
                await self._pass_on_while_many(connection)
            except asyncio.CancelledError:  # this worker stops
                async with asyncio.timeout(1.0):
                    await hand_over(connection)
                raise
            log.debug("relay_off")
        finally:
            connection.terminate()

    async def _pass_on_while_many(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        while True:
            ends, sent = loop.time() + _WINDOW, 0
            while (began := loop.time()) < ends:
                sent += await pass_on(connection)
                if loop.time() - began > _SLOW:
                    sent = 0
                    break
                await asyncio.sleep(_EVERY)
            if sent < _FEW and await switch_off(connection):
                return
