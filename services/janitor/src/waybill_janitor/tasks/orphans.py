"""Objects without a row: uploads that never became a job, files of runs that never published,
pictures of pages whose document is gone.

Storage is looked through day by day, and what no row names becomes garbage if it is older than the grace period. An
object of a job that is kept (active, pinned, under hold) is left alone, and so is one whose job belongs to another
pipeline: as long as that job is there, its files are its own business.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from waybill import garbage
from waybill.retention import let_holds_wait
from waybill.storage import Listed
from waybill_janitor.scan_cursor import resume
from waybill_janitor.storage_owner import check_owner
from waybill_janitor.task import BATCH, Batch, Tally, Tools

_KINDS = ("pages", "results", "uploads")
_FIRST_YEAR = 2025
"""No object is older: there was no Waybill."""
_KEY = re.compile(r"(?:uploads|results|pages)/\d\d/\d\d/\d\d/([0-9a-f-]{36})(?:\.\w+|/.+)")

_ORPHANS = """
SELECT listed.key
  FROM unnest($1::text[], $2::uuid[]) AS listed (key, job_id)
  LEFT JOIN LATERAL (SELECT * FROM retained WHERE retained.job_id = listed.job_id OFFSET 0) AS retained ON true
 WHERE (retained.job_id IS NULL
        OR (converted AND NOT kept AND retained.finished_at <= now() - $3::float8 * interval '1 second'))
   AND NOT EXISTS (SELECT FROM conversions
                    WHERE conversions.job_id = listed.job_id AND upload_deleted_at IS NULL
                      AND (upload_key = listed.key OR listed.key LIKE 'pages/%'))
   AND NOT EXISTS (SELECT FROM job_artefacts
                    WHERE job_artefacts.job_id = listed.job_id AND storage_key = listed.key)
   AND NOT EXISTS (SELECT FROM revisions
                    WHERE revisions.job_id = listed.job_id AND listed.key IN (xml_key, record_key))
   AND NOT EXISTS (SELECT FROM garbage WHERE garbage.key = listed.key)
"""


class _Object(NamedTuple):
    key: str
    job_id: uuid.UUID


class Orphans:
    name = "orphans"
    items = "stored objects that no row ever named"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._grace = tools.settings.orphan_grace

    async def plan(self) -> AsyncIterator[Batch]:
        await check_owner(self._tools.database, self._tools.storage, claim=False)
        async with self._tools.database.hot() as connection:
            looking = await resume(connection, self.name, self._tools.settings.janitor_scan_interval)
        if looking.rests:
            return
        until = looking.now - timedelta(seconds=self._grace)
        async for day in self._days(looking.now.year):
            if day <= looking.after:
                continue
            looked = False
            async for page in self._pages(day, until):
                yield Batch(await self._orphans(page))
                looked = True
            if looked:
                yield Batch([], place=looking.at(day))
        yield Batch([], place=looking.over())

    async def _days(self, this_year: int) -> AsyncIterator[str]:
        """The prefixes of the days that have objects, in order. A year or a month that has none costs one look."""
        for kind in _KINDS:
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

    async def _pages(self, prefix: str, until: datetime) -> AsyncIterator[list[_Object]]:
        page: list[_Object] = []
        async for listed in self._tools.storage.list(prefix):
            one = _parsed(listed)
            if one is not None and listed.modified <= until:
                page.append(one)
            if len(page) == BATCH:
                yield page
                page = []
        if page:
            yield page

    async def _orphans(self, page: list[_Object]) -> list[_Object]:
        async with self._tools.database.hot() as connection:
            rows = await connection.fetch(_ORPHANS, *map(list, zip(*page, strict=True)), self._grace)
        found = {row["key"] for row in rows}
        return [one for one in page if one.key in found]

    async def do(self, batch: Batch) -> Tally:
        await check_owner(self._tools.database, self._tools.storage, claim=True)
        async with self._tools.database.hot() as connection, connection.transaction():
            await let_holds_wait(connection)
            rows = await connection.fetch(_ORPHANS, *map(list, zip(*batch.items, strict=True)), self._grace)
            await garbage.doom(connection, [row["key"] for row in rows])
        return Tally(Counter(orphans=len(rows)))


def _parsed(listed: Listed) -> _Object | None:
    """None for a key that is none of ours: it stays."""
    match = _KEY.fullmatch(listed.key)
    try:
        return _Object(listed.key, uuid.UUID(match[1])) if match else None
    except ValueError:
        return None
