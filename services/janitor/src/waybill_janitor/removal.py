"""What the tasks that remove things share: pages of jobs, judged; then locked, judged again and removed."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

from waybill.retention import let_holds_wait
from waybill_janitor.cutoffs import FIRST_ID
from waybill_janitor.task import BATCH, Batch, Tools

# Somebody else's just now: it will still be there next time.
_LOCK = "SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED"


async def pages(tools: Tools, statement: str, until: uuid.UUID, *arguments: Any) -> AsyncIterator[Batch]:
    """A plan's pages: `statement` answers `job_id` and `due` for the next jobs after $1 and before $2, $3 of them."""
    after = FIRST_ID
    while True:
        async with tools.database.hot() as connection:
            rows = await connection.fetch(statement, after, until, BATCH, *arguments)
        if not rows:
            return
        after = rows[-1]["job_id"]
        yield Batch([row["job_id"] for row in rows if row["due"]])


async def old(tools: Tools, statement: str, days: float) -> AsyncIterator[Batch]:
    """A plan's pages where age is all that counts: `statement` answers the next `id`s after $1, older than $2 days."""
    after = FIRST_ID
    while True:
        async with tools.database.hot() as connection:
            rows = await connection.fetch(statement, after, days, BATCH)
        if not rows:
            return
        after = rows[-1]["id"]
        yield Batch([row["id"] for row in rows])


async def remove(tools: Tools, statement: str, job_ids: Sequence[uuid.UUID], *arguments: Any) -> Counter[str]:
    """Run `statement` for those of the jobs that could be locked; it judges them anew and answers one row of counts.

    In a statement of its own after the locks: it sees what was pinned, retried or uploaded again meanwhile. A batch
    takes as many transactions as it needs for each to be short.
    """
    counts: Counter[str] = Counter()
    left = list(job_ids)
    while left:
        portion, left = left[: tools.portion.size], left[tools.portion.size :]
        started = time.monotonic()
        async with tools.database.hot() as connection, connection.transaction():
            await let_holds_wait(connection)
            locked = [row["id"] for row in await connection.fetch(_LOCK, portion)]
            row = await connection.fetchrow(statement, locked, *arguments)
            assert row is not None  # noqa: S101 - counts always answer
        counts.update(dict(row))
        tools.portion.took(time.monotonic() - started)
    return counts
