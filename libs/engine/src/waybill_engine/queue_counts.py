"""How many jobs each queue has, counted no further than it takes to say "many".

Every arm reads an index that has only the jobs it counts, in that index's order, and stops at a limit. So the figures
cost the same whatever lies in the tables. Above the limit they are what was counted, and said to be at least that.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.db.database import driver
from waybill_engine.models import State

MOST_COUNTED = 2_000

# The names of queues in which jobs wait, one by one from the index; then each is counted by itself. Other states are
# counted for all queues together. Jobs that succeeded have no index: the newest jobs of all are looked through.
_COUNT = """
WITH RECURSIVE names AS (
    (SELECT queue FROM jobs WHERE state = 'queued' ORDER BY queue LIMIT 1)
     UNION ALL
    SELECT (SELECT queue FROM jobs WHERE state = 'queued' AND queue > names.queue ORDER BY queue LIMIT 1)
      FROM names WHERE names.queue IS NOT NULL
), counted AS (
    SELECT 'queued' AS state, names.queue, waiting.jobs, waiting.oldest, waiting.jobs AS examined
      FROM names, LATERAL (
               SELECT count(*) AS jobs, min(run_at) AS oldest
                 FROM (SELECT run_at FROM jobs
                        WHERE state = 'queued' AND jobs.queue = names.queue
                        ORDER BY queue, kind, isolate, priority DESC, tenant, created_at, id
                        LIMIT $1::int + 1) AS few
           ) AS waiting
     WHERE names.queue IS NOT NULL
     UNION ALL
    SELECT 'scheduled', queue, count(*), NULL, sum(count(*)) OVER ()
      FROM (SELECT queue FROM jobs WHERE state = 'scheduled' ORDER BY run_at LIMIT $1::int + 1) AS few
     GROUP BY queue
     UNION ALL
    SELECT 'running', queue, count(*), NULL, sum(count(*)) OVER ()
      FROM (SELECT queue FROM jobs WHERE lease_owner IS NOT NULL
             ORDER BY lease_owner, kind, tenant LIMIT $1::int + 1) AS few
     GROUP BY queue
     UNION ALL
    SELECT 'dead_letter', queue, count(*), NULL, sum(count(*)) OVER ()
      FROM (SELECT queue FROM jobs WHERE state = 'dead_letter' ORDER BY id LIMIT $1::int + 1) AS few
     GROUP BY queue
     UNION ALL
    SELECT state, queue, count(*), NULL, sum(count(*)) OVER (PARTITION BY state)
      FROM ((SELECT state, queue FROM jobs WHERE state IN ('failed', 'cancelled')
                AND (state, id) >= ('failed', $2::uuid) AND (state, id) < ('failed', $3::uuid)
              ORDER BY state, id LIMIT $1::int + 1)
             UNION ALL
            (SELECT state, queue FROM jobs WHERE state IN ('failed', 'cancelled')
                AND (state, id) >= ('cancelled', $2::uuid) AND (state, id) < ('cancelled', $3::uuid)
              ORDER BY state, id LIMIT $1::int + 1)
             UNION ALL
            (SELECT state, queue FROM shelved_jobs WHERE state = 'failed' LIMIT $1::int + 1)
             UNION ALL
            (SELECT state, queue FROM shelved_jobs WHERE state = 'cancelled' LIMIT $1::int + 1)) AS few
     GROUP BY state, queue
     UNION ALL
    SELECT 'succeeded', queue, count(*) FILTER (WHERE state = 'succeeded'), NULL, sum(count(*)) OVER ()
      FROM (SELECT queue, state FROM all_jobs ORDER BY id DESC LIMIT $1::int + 1) AS few
     GROUP BY queue
)
SELECT state, queue, jobs, oldest, examined > $1::int AS more FROM counted
"""

_FIRST, _LAST = uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)


@dataclass(slots=True)
class QueueCount:
    counts: dict[State, int] = field(default_factory=dict)
    at_least: set[State] = field(default_factory=set)
    """States of which there may be more than were counted."""
    oldest_queued_at: datetime | None = None


async def count_by_queue(session: AsyncSession, most: int = MOST_COUNTED) -> dict[str, QueueCount]:
    found: dict[str, QueueCount] = defaultdict(QueueCount)
    connection = await driver(session)
    for state, queue, jobs, oldest, more in await connection.fetch(_COUNT, most, _FIRST, _LAST):
        one = found[queue]
        if jobs:
            one.counts[State(state)] = min(jobs, most)
        if more:
            one.at_least.add(State(state))
        one.oldest_queued_at = oldest or one.oldest_queued_at
    return dict(found)
