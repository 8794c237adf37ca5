"""Sequences in which jobs are parked although there is room. Whoever ends a job lets the next one in, so there are
none, unless a worker of release 0.1.0, which knows nothing of sequences, ended it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from waybill.janitor.task import BATCH, Batch, Tally, TaskTools
from waybill_engine.sequences import SequenceId, advance, find_stalled

_AT_ONCE = 100


class Sequences:
    name = "sequences"
    items = "sequences whose next job was forgotten"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools

    async def plan(self) -> AsyncIterator[Batch]:
        last: SequenceId | None = SequenceId("", "", "")
        while last is not None:
            async with self._tools.database.hot() as connection:
                stalled, last = await find_stalled(connection, last, BATCH)
            for start in range(0, len(stalled), _AT_ONCE):
                yield Batch(stalled[start : start + _AT_ONCE])

    async def do(self, batch: Batch) -> Tally:
        async with self._tools.database.hot() as connection, connection.transaction():
            await advance(connection, batch.items)
        return Tally(Counter({"advanced": len(batch.items)}))
