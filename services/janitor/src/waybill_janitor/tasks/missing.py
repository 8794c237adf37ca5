"""Rows whose object is missing: marked, reported, and unmarked should it be back.

Nothing of ours loses an object that a row names; a restored backup, a bucket's own lifecycle rule or a person may. A
result that is missing shows as expired, so that its owner is told to upload again.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import structlog

from waybill.errors import IoFailure
from waybill_janitor.scan_cursor import resume
from waybill_janitor.task import BATCH, Batch, Tally, Tools

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_AT_ONCE = 16
_BELIEVABLE = 20
"""If of so many objects none is there, the storage is the wrong one, or not mounted."""

_PAGE = """
SELECT job_id, array_agg(key ORDER BY key) AS keys, array_agg(missing ORDER BY key) AS missing
  FROM (SELECT page.job_id, upload_key AS key, upload_missing_at IS NOT NULL AS missing
          FROM (SELECT id AS job_id FROM jobs WHERE id > $1 ORDER BY id LIMIT $2) AS page
          JOIN conversions ON conversions.job_id = page.job_id AND upload_deleted_at IS NULL
         UNION ALL
        SELECT page.job_id, storage_key, missing_at IS NOT NULL
          FROM (SELECT id AS job_id FROM jobs WHERE id > $1 ORDER BY id LIMIT $2) AS page
          JOIN job_artefacts ON job_artefacts.job_id = page.job_id) AS named
 GROUP BY job_id
 ORDER BY job_id
"""

_PAGE_ENDS = """
SELECT max(id::text) FROM (SELECT id FROM jobs WHERE id > $1 ORDER BY id LIMIT $2) AS page
"""

# Only what is still named: a row that let go of its object meanwhile is right, and the object's absence too.
_MARK = """
WITH seen AS MATERIALIZED (
    SELECT job_id, key, missing FROM unnest($1::uuid[], $2::text[], $3::bool[]) AS seen (job_id, key, missing)
), documents AS (
    UPDATE conversions
       SET upload_missing_at = CASE WHEN missing THEN now() END, changed = pg_current_xact_id(), changed_at = now()
      FROM seen
     WHERE conversions.job_id = seen.job_id AND upload_key = key AND upload_deleted_at IS NULL
       AND (upload_missing_at IS NOT NULL) <> missing
    RETURNING conversions.owner
), artefacts AS (
    UPDATE job_artefacts SET missing_at = CASE WHEN missing THEN now() END
      FROM seen
     WHERE job_artefacts.job_id = seen.job_id AND storage_key = key AND (missing_at IS NOT NULL) <> missing
    RETURNING job_artefacts.job_id, name, missing
)
SELECT (SELECT count(*) FROM documents) + (SELECT count(*) FROM artefacts) AS marked,
       (SELECT array_agg(DISTINCT owner) FROM documents) AS owners,
       (SELECT array_agg(job_id) FROM artefacts WHERE name = 'xml') AS results
"""

# After the marks, in a statement of its own: a conversion has one row and may have been changed by the first.
_SHOW = """
WITH shown AS (
    UPDATE conversions
       SET status = CASE WHEN missing_at IS NULL THEN 'complete' ELSE 'expired' END,
           changed = pg_current_xact_id(), changed_at = now()
      FROM job_artefacts
     WHERE conversions.job_id = ANY ($1::uuid[]) AND status IN ('complete', 'expired') AND deleted_at IS NULL
       AND job_artefacts.job_id = conversions.job_id AND name = 'xml'
    RETURNING owner
)
SELECT count(pg_notify('waybill_changes', owner))
  FROM (SELECT owner FROM shown UNION SELECT unnest($2::text[])) AS owners
"""


class _Object(NamedTuple):
    job_id: uuid.UUID
    key: str
    missing: bool


class Missing:
    name = "missing"
    items = "rows whose object is missing, or back"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            looking = await resume(connection, self.name, self._tools.settings.janitor_scan_interval)
        if looking.rests:
            return
        after = uuid.UUID(looking.after) if looking.after else uuid.UUID(int=0)
        while True:
            async with self._tools.database.hot() as connection:
                last = await connection.fetchval(_PAGE_ENDS, after, BATCH)
                rows = await connection.fetch(_PAGE, after, BATCH)
            if last is None:
                break
            named = [
                _Object(row["job_id"], key, missing)
                for row in rows
                for key, missing in zip(row["keys"], row["missing"], strict=True)
            ]
            yield Batch(await self._changed(named), place=looking.at(str(last)))
            after = uuid.UUID(last)
        yield Batch([], place=looking.over())

    async def _changed(self, named: Sequence[_Object]) -> list[_Object]:
        """Those that are not as their rows say, as they are."""
        there = await self._look([one.key for one in named])
        if len(named) >= _BELIEVABLE and not any(there):
            raise IoFailure(
                f"Not one of {len(named)} stored objects is there, which is not believed. "
                "Is WAYBILL_STORAGE_URL right, and is the folder mounted?"
            )
        return [
            _Object(one.job_id, one.key, not found)
            for one, found in zip(named, there, strict=True)
            if one.missing == found
        ]

    async def _look(self, keys: Sequence[str]) -> list[bool]:
        waiting = iter(range(len(keys)))
        there = [False] * len(keys)

        async def look() -> None:
            for index in waiting:
                there[index] = await self._tools.storage.exists(keys[index])

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_AT_ONCE):
                    group.create_task(look())
        except* IoFailure as failures:
            raise failures.exceptions[0] from None
        return there

    async def do(self, batch: Batch) -> Tally:
        items: Sequence[_Object] = batch.items
        columns: list[list[Any]] = [list(column) for column in zip(*items, strict=True)]
        async with self._tools.database.hot() as connection, connection.transaction():
            row = await connection.fetchrow(_MARK, *columns)
            assert row is not None  # noqa: S101 - sub-selects always answer
            await connection.execute(_SHOW, row["results"] or [], row["owners"] or [])
        for one in items:
            log.warning("object_missing" if one.missing else "object_back", job_id=str(one.job_id), key=one.key)
        gone = sum(one.missing for one in items)
        return Tally(Counter(marked=gone, unmarked=len(items) - gone))
