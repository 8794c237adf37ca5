"""Erasures that somebody asked for and that are not finished: killed in the middle, or waiting for what still ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence

import structlog

from waybill.errors import Conflict
from waybill.janitor.task import Batch, Tally, TaskTools
from waybill_engine import erasure
from waybill_engine.erasure import Eraser

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_AT_A_TIME = 30.0
"""Seconds before the lease is renewed in between."""


class Erasures:
    name = "erasures"
    items = "erasures to go on with"

    def __init__(self, tools: TaskTools, erasers: Sequence[Eraser]) -> None:
        self._tools = tools
        self._erasers = erasers

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            for one in await erasure.open_ones(connection):
                yield Batch([one])

    async def do(self, batch: Batch) -> Tally:
        (erasure_id,) = batch.items
        database, storage = self._tools.database, self._tools.storage
        async with database.hot() as connection:
            before = await erasure.get(connection, erasure_id)
        try:
            after = await erasure.erase(database, storage, self._erasers, erasure_id, within=_AT_A_TIME)
        except Conflict as error:  # its tenant came under legal hold after it was asked for
            log.warning("erasure_held", erasure=str(erasure_id))
            return Tally(trouble=error.message)
        done = Counter(
            jobs=after.jobs - before.jobs, files=after.files - before.files, finished=int(after.finished_at is not None)
        )
        return Tally(done, {"open": float(after.finished_at is None)})
