"""Jobs that ended a while ago leave the hot table; days of the shelf on which everything is past its age go whole."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import asyncpg

from waybill.ids import first_id_at
from waybill.janitor.task import BATCH, Batch, Tally, TaskTools
from waybill.retention import let_holds_wait
from waybill_engine import shelf, shelf_days
from waybill_janitor.cutoffs import Cutoffs
from waybill_janitor.settings import JanitorSettings

_NOT_ALLOWED = (
    "The janitor's database user must own the table shelved_jobs and may need CREATE on its schema, to make a partition"
    " for each day. Allow it, or set WAYBILL_SHELVE_AFTER=never."
)


class Shelving:
    name = "shelf"
    items = "ended jobs to shelve"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools
        self._after = tools.settings_of(JanitorSettings).shelve_after

    async def plan(self) -> AsyncIterator[Batch]:
        """Nothing while jobs stay where they are, or a worker of a release lives that knows only the hot table."""
        if self._after is None:
            return
        async with self._tools.database.hot() as connection:
            may = await shelf.may_shelve(connection)
            now = (await Cutoffs.read(connection)).now
        after, until = uuid.UUID(int=0), first_id_at(now - timedelta(seconds=self._after))
        while may:
            async with self._tools.database.hot() as connection:
                page = await shelf.page(connection, after, until, BATCH)
                due = await shelf.due(connection, page, self._after) if page else []
            if not page:
                return
            after = page[-1]
            yield Batch(due)

    async def do(self, batch: Batch) -> Tally:
        """In as many transactions as it needs for each to be short. What cannot be had now is the next run's."""
        assert self._after is not None  # noqa: S101 - else nothing was planned
        done: Counter[str] = Counter()
        size = self._tools.batch_size
        left = list(batch.items)
        while left:
            jobs, left = left[: size.jobs], left[size.jobs :]
            started = time.monotonic()
            try:
                async with self._tools.database.hot() as connection:
                    done["shelved"] += await shelf.shelve(connection, jobs, self._after)
            except asyncpg.LockNotAvailableError:
                break
            except asyncpg.InsufficientPrivilegeError:
                return Tally(done, trouble=_NOT_ALLOWED)
            size.took(time.monotonic() - started)
        return Tally(done)


class ShelfDays:
    name = "shelf_days"
    items = "days of ended jobs to drop"

    def __init__(self, tools: TaskTools, kinds_with_rows: Sequence[str] | None) -> None:
        """`kinds_with_rows` are kinds whose jobs pipelines have rows of: they keep their day. None: any job does."""
        self._tools = tools
        self._kinds = kinds_with_rows
        self._days = tools.settings_of(JanitorSettings).jobs_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            until = (await Cutoffs.read(connection)).until("jobs", self._days)
            days = [day for day in await shelf_days.known(connection) if day.end <= until]
        for day in days:
            async with self._tools.database.hot() as connection:
                past = await shelf_days.past(connection, day, self._days, self._kinds)
            yield Batch([day] if past else [])

    async def do(self, batch: Batch) -> Tally:
        (day,) = batch.items
        async with self._tools.database.hot() as connection, connection.transaction():
            await let_holds_wait(connection)
            gone = await shelf_days.past(connection, day, self._days, self._kinds) and await shelf_days.drop(
                connection, day
            )
        return Tally(Counter(days_dropped=int(gone)))
