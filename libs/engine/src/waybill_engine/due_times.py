"""When the next scheduled job and the next tick of a schedule are due. Idle workers ask for both in one statement.

Searches for scheduled jobs begin where earlier ones ended (`DueScan`). Those before were promoted, and while somebody's
long transaction keeps vacuum from removing them from the index, a search from the beginning would step over them all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from waybill_engine.sequences import MISSED_TURN_IN

if TYPE_CHECKING:
    from waybill.db.database import Connection


def next_job_in(after: str) -> str:
    """SQL for the seconds until the first scheduled job that is due later than `after`, an SQL expression.

    A parent that waits for its children and a parked job of a sequence have a `run_at` of infinity: the ends of others
    make them due, not the clock.
    """
    return f"""SELECT extract(epoch FROM run_at - now())::float8 FROM jobs
         WHERE state = 'scheduled' AND run_at > {after} AND run_at < 'infinity' ORDER BY run_at LIMIT 1"""  # noqa: S608


NEXT_TICK_IN = "SELECT extract(epoch FROM min(next_at) - now())::float8 FROM schedules WHERE paused_at IS NULL"
"""SQL for the seconds until the next tick of any schedule."""

FROM_HERE_ON = "COALESCE({since}::timestamptz, '-infinity')"
"""SQL for where a search begins, given the parameter."""

_DUE = f"""
WITH next AS MATERIALIZED (
    SELECT ({next_job_in(FROM_HERE_ON.format(since="$1"))}) AS job_in
)
SELECT LEAST(job_in, ({MISSED_TURN_IN})) AS job, ({NEXT_TICK_IN}) AS tick,
       now() + LEAST(job_in, 0) * interval '1 second' AS searched
  FROM next
"""  # noqa: S608 - made of constants

_MARGIN = timedelta(seconds=60)
"""How much earlier than the last search came a search begins. A job is due no earlier than the transaction began that
scheduled it, so this is for how long such a transaction may be open."""

_ANEW = 30.0
"""Seconds after which a search begins at the beginning, for jobs of transactions that were open for longer."""


class DueScan:
    """Where the next search for scheduled jobs begins. By the database's clock, except for when to begin anew."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: datetime | None = None
        self._searched: datetime | None = None
        self._anew_at = 0.0

    def since(self) -> datetime | None:
        """No scheduled job that was visible to an earlier search is due before this. None: begin at the beginning."""
        if self._clock() >= self._anew_at:
            self._anew_at = self._clock() + _ANEW
            self._since = None
        return self._since

    def searched(self, until: datetime) -> None:
        """A search found no job that is due before this, or promoted those it found."""
        # After a failover the clock may be behind, and jobs may be due before those of the past.
        set_back = self._searched is not None and until < self._searched - _MARGIN / 2
        self._searched = until
        self._since = None if set_back else until - _MARGIN


class DueTimes(NamedTuple):
    """Seconds until the next job and the next tick: 0 or less when one is due already, None when there is none.

    A missed turn of a sequence counts as a job that is due.
    """

    job: float | None
    tick: float | None
    searched: datetime
    """No job is due before this."""


async def next_due(connection: Connection, since: datetime | None = None) -> DueTimes:
    """What is due next. Jobs that are due before `since` are left out."""
    row = await connection.fetchrow(_DUE, since)
    assert row is not None, "a SELECT without FROM always answers"  # noqa: S101
    return DueTimes(*row)
