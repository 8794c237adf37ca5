"""The task that links events while the API runs, so that they are unlinked for seconds only.

Every replica has one, and a lock lets one of them work at a time. Without an API, the janitor links with each run.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from waybill.audit.chain import BATCH, link, renew
from waybill.audit.signatures import Signer
from waybill.background_tasks import end

if TYPE_CHECKING:
    from waybill.config import CommonSettings
    from waybill.db import Database

log: structlog.stdlib.BoundLogger = structlog.get_logger()

EVERY = 5.0
"""Seconds between two looks."""


class Linker:
    def __init__(self, database: Database, settings: CommonSettings, *, every: float = EVERY) -> None:
        self._database = database
        self._settings = settings
        self._every = every
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            await end(self._task)

    async def _run(self) -> None:
        signer: Signer | None = None
        while True:
            await asyncio.sleep(self._every)
            try:
                if signer is None:
                    async with self._database.hot() as connection:
                        found = await Signer.of(self._settings, connection)
                    await renew(self._database, found)
                    signer = found
                while await link(self._database, signer) == BATCH:
                    pass
            except Exception as error:  # the next look is due soon, and the trail waits for it
                log.warning("audit_events_not_linked", exc_info=error)
