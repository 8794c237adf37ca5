"""The dead-letter queue: how many, how old; an alarm when nobody has looked for too long."""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog

from waybill.janitor.task import Batch, Tally, TaskTools
from waybill_engine.leftovers import dead_letters
from waybill_janitor.settings import JanitorSettings

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class DeadLetters:
    name = "dead_letters"
    items = "dead letters that nobody has looked at for long"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            queue = await dead_letters(connection, self._tools.settings_of(JanitorSettings).dead_letter_alarm)
        found = {
            "waiting": float(queue.waiting),
            "old": float(queue.old),
            "oldest_seconds": round(queue.oldest_seconds, 1),
        }
        yield Batch(["alarm"] * queue.old, found)

    async def do(self, batch: Batch) -> Tally:
        log.warning(
            "dead_letters_old",
            old=len(batch.items),
            oldest_hours=round(batch.found["oldest_seconds"] / 3600, 1),
            look="waybill dlq ls",
        )
        return Tally()
