"""Rows whose object is missing: they are marked and reported, and unmarked should it be back.

Nothing of ours loses an object that a row names; a restored backup, a bucket's own lifecycle rule or a person may. Each
pipeline decides what its owners see of it.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import structlog

from waybill.errors import IoFailure
from waybill.janitor.task import BATCH, Batch, Tally, TaskTools
from waybill.retention import NamedObject, ObjectNames
from waybill.storage.parallel_work import side_by_side
from waybill_engine.retention import jobs_after
from waybill_janitor.scan_cursor import resume
from waybill_janitor.settings import JanitorSettings

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_AT_ONCE = 16
_BELIEVABLE = 20
"""If of so many objects none is there, the storage is the wrong one, or not mounted."""


class Missing:
    name = "missing"
    items = "rows whose object is missing, or back"

    def __init__(self, tools: TaskTools, objects: Sequence[ObjectNames]) -> None:
        """`objects` are the engine's and the pipelines', in the order in which they are marked."""
        self._tools = tools
        self._objects = objects

    async def plan(self) -> AsyncIterator[Batch]:
        interval = self._tools.settings_of(JanitorSettings).janitor_scan_interval
        async with self._tools.database.hot() as connection:
            scan = await resume(connection, self.name, interval, anew=self._tools.compare_all)
        yield Batch([], scan.found)
        if scan.rests:
            return
        after = uuid.UUID(scan.after) if scan.after else uuid.UUID(int=0)
        while True:
            async with self._tools.database.hot() as connection:
                jobs = await jobs_after(connection, after, BATCH)
                expected = [one for each in self._objects for one in await each.expected(connection, jobs)]
            if not jobs:
                break
            after = jobs[-1]
            yield Batch(await self._changed(sorted(expected)), cursor=scan.at(str(after)))
        yield Batch([], cursor=scan.over())

    async def _changed(self, expected: Sequence[NamedObject]) -> list[NamedObject]:
        """Those that are not as their rows say, as they are."""
        there = await self._look([one.key for one in expected])
        if len(expected) >= _BELIEVABLE and not any(there):
            raise IoFailure(
                f"None of {len(expected)} stored objects exists, so the storage is probably wrong. "
                "Is WAYBILL_STORAGE_URL right, and is the folder mounted?"
            )
        return [
            NamedObject(one.job_id, one.key, not found)
            for one, found in zip(expected, there, strict=True)
            if one.missing == found
        ]

    async def _look(self, keys: Sequence[str]) -> list[bool]:
        waiting = iter(range(len(keys)))
        there = [False] * len(keys)

        async def look() -> None:
            for index in waiting:
                there[index] = await self._tools.storage.exists(keys[index])

        await side_by_side(look, _AT_ONCE)
        return there

    async def do(self, batch: Batch) -> Tally:
        items: Sequence[NamedObject] = batch.items
        async with self._tools.database.hot() as connection, connection.transaction():
            for each in self._objects:
                await each.mark(connection, items)
        for one in items:
            log.warning("object_missing" if one.missing else "object_back", job_id=str(one.job_id), key=one.key)
        gone = sum(one.missing for one in items)
        return Tally(Counter(marked=gone, unmarked=len(items) - gone))
