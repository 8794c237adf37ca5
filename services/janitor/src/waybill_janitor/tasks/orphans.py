"""Objects that no row names: uploads that never became a job, files of runs that never published, pictures of pages
whose document is gone.

Storage is scanned day by day, and an object that no row names becomes garbage if it is older than the grace period. An
object of a job that is kept (active, pinned, under legal hold) is left alone, and so is one whose job belongs to no
installed pipeline: as long as that job is there, its files are its own business.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from waybill import garbage
from waybill.janitor.task import BATCH, Batch, Tally, TaskTools
from waybill.retention import ObjectNames, StoredObject, let_holds_wait
from waybill.storage import Listed
from waybill.storage.owner_mark import check_owner
from waybill_engine.retention import leftovers_may_go
from waybill_janitor.scan_cursor import resume
from waybill_janitor.settings import JanitorSettings

if TYPE_CHECKING:
    from waybill.db.database import Connection

_FIRST_YEAR = 2025
"""No object is older: there was no Waybill."""
_KEY = re.compile(r"[a-z0-9_-]+/\d\d/\d\d/\d\d/([0-9a-f-]{36})(?:\.\w+|/.+)")


class Orphans:
    name = "orphans"
    items = "stored objects that no row ever named"

    def __init__(self, tools: TaskTools, objects: Sequence[ObjectNames], prefixes: Sequence[str]) -> None:
        self._tools = tools
        self._objects = objects
        self._prefixes = sorted(set(prefixes))
        self._settings = tools.settings_of(JanitorSettings)

    async def plan(self) -> AsyncIterator[Batch]:
        await check_owner(self._tools.database, self._tools.storage, claim=False)
        async with self._tools.database.hot() as connection:
            interval = self._settings.janitor_scan_interval
            scan = await resume(connection, self.name, interval, anew=self._tools.compare_all)
        yield Batch([], scan.found)
        if scan.rests:
            return
        until = scan.now - timedelta(seconds=self._settings.orphan_grace)
        async for day in self._days(scan.now.year):
            if day <= scan.after:
                continue
            looked = False
            async for page in self._pages(day, until):
                async with self._tools.database.hot() as connection:
                    orphans = await self._orphans(connection, page)
                yield Batch(orphans)
                looked = True
            if looked:
                yield Batch([], cursor=scan.at(day))
        yield Batch([], cursor=scan.over())

    async def _days(self, this_year: int) -> AsyncIterator[str]:
        """The prefixes of the days that have objects, in order. A year or a month that has none costs one look."""
        for kind in self._prefixes:
            for year in range(_FIRST_YEAR, this_year + 2):
                for month in range(1, 13) if await self._any(f"{kind}/{year % 100:02}") else ():
                    prefix = f"{kind}/{year % 100:02}/{month:02}"
                    for day in range(1, 32) if await self._any(prefix) else ():
                        yield f"{prefix}/{day:02}"

    async def _any(self, prefix: str) -> bool:
        async with aclosing(cast("Any", self._tools.storage.list(prefix))) as listed:
            async for _ in listed:
                return True
        return False

    async def _pages(self, prefix: str, until: datetime) -> AsyncIterator[list[StoredObject]]:
        page: list[StoredObject] = []
        async for listed in self._tools.storage.list(prefix):
            one = _parsed(listed)
            if one is not None and listed.modified <= until:
                page.append(one)
            if len(page) == BATCH:
                yield page
                page = []
        if page:
            yield page

    async def _orphans(self, connection: Connection, listed: Sequence[StoredObject]) -> list[StoredObject]:
        """Those that may go."""
        jobs = list({one.job_id for one in listed})
        may_go = await leftovers_may_go(connection, jobs, self._settings.orphan_grace)
        owned: set[uuid.UUID] = set()
        named = await garbage.known(connection, [one.key for one in listed])
        for each in self._objects:
            owned |= await each.owned(connection, jobs)
            named |= await each.named(connection, listed)
        return [
            one
            for one in listed
            if one.key not in named and (one.job_id not in may_go or (one.job_id in owned and may_go[one.job_id]))
        ]

    async def do(self, batch: Batch) -> Tally:
        await check_owner(self._tools.database, self._tools.storage, claim=True)
        async with self._tools.database.hot() as connection, connection.transaction():
            await let_holds_wait(connection)
            orphans = await self._orphans(connection, batch.items)
            await garbage.doom(connection, [one.key for one in orphans])
        return Tally(Counter(orphans=len(orphans)))


def _parsed(listed: Listed) -> StoredObject | None:
    """None for a key that is none of ours: it stays."""
    match = _KEY.fullmatch(listed.key)
    try:
        return StoredObject(uuid.UUID(match[1]), listed.key) if match else None
    except ValueError:
        return None
