"""What the engine's tables have too much of after a while: workers gone for long, counts of breakers, old reports.

The janitor removes it. The dead-letter queue is only looked at: somebody else must decide.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.retention.rules import served_rows

if TYPE_CHECKING:
    from waybill.db.database import Connection

_GONE_WORKERS = """
SELECT id FROM workers
 WHERE state IN ('stopped', 'gone') AND stopped_at <= now() - $2::float8 * interval '1 day' AND id > $1
   AND NOT EXISTS (SELECT FROM jobs WHERE lease_owner = workers.id)
 ORDER BY id LIMIT $3
"""

_FORGET_WORKERS = """
WITH removed AS (
    DELETE FROM workers
     WHERE id = ANY ($1::uuid[]) AND state IN ('stopped', 'gone')
       AND NOT EXISTS (SELECT FROM jobs WHERE lease_owner = workers.id)
    RETURNING 1
)
SELECT count(*) FROM removed
"""

# By its own index, and no further than it takes to say "many".
_DEAD_LETTERS = """
SELECT count(*) AS waiting, count(*) FILTER (WHERE finished_at <= now() - $1::float8 * interval '1 second') AS old,
       COALESCE(extract(epoch FROM now() - min(finished_at)), 0)::float8 AS oldest_seconds
  FROM (SELECT finished_at FROM jobs WHERE state = 'dead_letter' ORDER BY id LIMIT 10000) AS letters
"""

SERVED_ROWS = (
    served_rows(
        "breaker_counts",
        count="SELECT count(*) FROM breaker_counts WHERE bucket <= now() - interval '1 day'",
        forget="""
DELETE FROM breaker_counts WHERE (name, bucket) IN
       (SELECT name, bucket FROM breaker_counts WHERE bucket <= now() - interval '1 day' LIMIT $1)
""",
    ),
    served_rows(
        "breaker_events",
        count="SELECT count(*) FROM breaker_events WHERE at <= now() - $1::float8 * interval '1 day'",
        forget="""
DELETE FROM breaker_events WHERE (name, id) IN
       (SELECT name, id FROM breaker_events WHERE at <= now() - $2::float8 * interval '1 day' LIMIT $1)
""",
        by_age=True,
    ),
    served_rows(
        "erasures",
        count="SELECT count(*) FROM erasures WHERE finished_at <= now() - $1::float8 * interval '1 day'",
        forget="""
DELETE FROM erasures WHERE id IN
       (SELECT id FROM erasures WHERE finished_at <= now() - $2::float8 * interval '1 day' LIMIT $1)
""",
        by_age=True,
    ),
)
"""Breakers' counts are of use for minutes; their events and the reports of erasures are history."""


@dataclass(frozen=True, slots=True)
class DeadLetterQueue:
    waiting: int
    """How many there are, counted up to 10,000."""
    old: int
    """How many of them are older than asked for."""
    oldest_seconds: float


async def gone_workers(connection: Connection, after: uuid.UUID, days: float, limit: int) -> list[uuid.UUID]:
    """Workers that stopped or went missing so many days ago."""
    return [row["id"] for row in await connection.fetch(_GONE_WORKERS, after, days, limit)]


async def forget_workers(connection: Connection, worker_ids: Sequence[uuid.UUID]) -> int:
    return int(await connection.fetchval(_FORGET_WORKERS, worker_ids))


async def dead_letters(connection: Connection, seconds: float) -> DeadLetterQueue:
    """How the dead-letter queue stands; old are those of more than so many seconds."""
    row = await connection.fetchrow(_DEAD_LETTERS, seconds)
    assert row is not None  # noqa: S101 - aggregates always answer
    return DeadLetterQueue(**row)
