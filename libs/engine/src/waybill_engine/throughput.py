"""How many jobs ended in each minute, and how long they had waited and run: what throughput is drawn from.

Workers add to the present minute every few seconds. It is a figure for people, not a ledger: what a killed worker had
counted since its last report is missing, and so are jobs that ended without a run, because somebody cancelled them
while they waited or their last worker died.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.db.database import Connection

# In one order, so that two workers never wait for each other.
_ADD = """
INSERT INTO finished_by_minute (minute, kind, outcome, jobs, seconds_queued, seconds_running)
SELECT date_trunc('minute', now()), kind, outcome, jobs, queued, running
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::float8[], $5::float8[])
       AS mine (kind, outcome, jobs, queued, running)
 ORDER BY kind, outcome
    ON CONFLICT (minute, kind, outcome) DO UPDATE
   SET jobs = finished_by_minute.jobs + excluded.jobs,
       seconds_queued = finished_by_minute.seconds_queued + excluded.seconds_queued,
       seconds_running = finished_by_minute.seconds_running + excluded.seconds_running
"""

# Summed up by Postgres: an hour of a thousand kinds has more rows than a page can wait for.
_BY_MINUTE = """
SELECT minute, outcome, sum(jobs)::bigint, sum(seconds_queued), sum(seconds_running)
  FROM finished_by_minute
 WHERE minute > now() - $1::interval
 GROUP BY minute, outcome
 ORDER BY minute, outcome
"""

_BY_KIND = """
SELECT kind, outcome, sum(jobs)::bigint, sum(seconds_queued), sum(seconds_running)
  FROM finished_by_minute
 WHERE minute > now() - $1::interval
 GROUP BY kind, outcome
 ORDER BY kind, outcome
"""

ALL_KINDS = "*"


@dataclass(slots=True)
class Finished:
    """Jobs of one kind, or of all kinds together, that ended in one way."""

    kind: str
    outcome: str
    """The state they ended in."""
    jobs: int = 0
    seconds_queued: float = 0.0
    """The sum of the time between being runnable and being claimed, before their last run."""
    seconds_running: float = 0.0
    """The sum of the time of their last run."""


async def add(connection: Connection, finished: Sequence[Finished]) -> None:
    """Add to the present minute. Do not repeat it if the answer is lost: it may have been counted."""
    await connection.execute(
        _ADD,
        [one.kind for one in finished],
        [one.outcome for one in finished],
        [one.jobs for one in finished],
        [one.seconds_queued for one in finished],
        [one.seconds_running for one in finished],
    )


async def by_minute(connection: Connection, within: timedelta) -> list[tuple[datetime, Finished]]:
    """What ended within the time up to now, of all kinds together, by the minute in which it was reported."""
    rows = await connection.fetch(_BY_MINUTE, within)
    return [(minute, Finished(ALL_KINDS, *rest)) for minute, *rest in rows]


async def by_kind(connection: Connection, within: timedelta) -> list[Finished]:
    """The same by kind."""
    return [Finished(*row) for row in await connection.fetch(_BY_KIND, within)]
