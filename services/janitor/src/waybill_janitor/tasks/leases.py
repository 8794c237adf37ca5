"""Workers whose lease ran out: their jobs go back, or to the dead letters. Workers do this for each other every few
seconds; the janitor is there for when none is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import structlog

from waybill.janitor.task import Batch, Tally, TaskTools
from waybill_engine.rescue import look_for_trouble, rescue

log: structlog.stdlib.BoundLogger = structlog.get_logger()

SETTLE_TIME = 150.0
"""Seconds that workers have to come back after an outage of Postgres: many times any sensible heartbeat interval."""
_MOST_ROUNDS = 50


class Leases:
    name = "leases"
    items = "looks at workers whose lease ran out"

    def __init__(self, tools: TaskTools, *, settle_time: float = SETTLE_TIME) -> None:
        self._tools = tools
        self._settle_time = settle_time

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            trouble = await look_for_trouble(connection, [], [], settle_time=self._settle_time)
        if trouble.gone:
            yield Batch(["rescue"])

    async def do(self, batch: Batch) -> Tally:  # noqa: ARG002 - there is only one
        tally = Tally()
        for _ in range(_MOST_ROUNDS):
            async with self._tools.database.hot() as connection:
                for one in await rescue(connection, settle_time=self._settle_time):
                    log.warning("rescued", job_id=str(one.id), verdict=one.event, worker=one.worker)
                    tally.done[one.event] += 1
                if not (await look_for_trouble(connection, [], [], settle_time=self._settle_time)).gone:
                    break
        return Tally(Counter({name: count for name, count in tally.done.items() if count}))
