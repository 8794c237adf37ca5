"""The dead-letter queue: how many, how old; an alarm when nobody has looked for too long."""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog

from waybill_janitor.task import Batch, Tally, Tools

log: structlog.stdlib.BoundLogger = structlog.get_logger()

# By its own index, and no further than it takes to say "many".
_LOOK = """
SELECT count(*) AS letters, COALESCE(extract(epoch FROM now() - min(finished_at)), 0)::float8 AS oldest,
       count(*) FILTER (WHERE finished_at <= now() - $1::float8 * interval '1 second') AS old
  FROM (SELECT finished_at FROM jobs WHERE state = 'dead_letter' ORDER BY id LIMIT 10000) AS letters
"""


class DeadLetters:
    name = "dead_letters"
    items = "dead letters that nobody has looked at for long"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            row = await connection.fetchrow(_LOOK, self._tools.settings.dead_letter_alarm)
        assert row is not None  # noqa: S101 - aggregates always answer
        found = {"waiting": float(row["letters"]), "old": float(row["old"]), "oldest_seconds": round(row["oldest"], 1)}
        yield Batch(["alarm"] * row["old"], found)

    async def do(self, batch: Batch) -> Tally:
        log.warning(
            "dead_letters_old",
            old=len(batch.items),
            oldest_hours=round(batch.found["oldest_seconds"] / 3600, 1),
            look="waybill dlq ls",
        )
        return Tally()
