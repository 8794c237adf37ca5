"""When the next scheduled job and the next tick of a schedule are due. Idle workers ask for both in one statement."""

from __future__ import annotations

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

_DUE = f"""
SELECT LEAST(({next_job_in("'-infinity'")}), ({MISSED_TURN_IN})) AS job,
       ({NEXT_TICK_IN}) AS tick
"""


class DueTimes(NamedTuple):
    """Seconds until the next job and the next tick: 0 or less when one is due already, None when there is none.

    A missed turn of a sequence counts as a job that is due.
    """

    job: float | None
    tick: float | None


async def next_due(connection: Connection) -> DueTimes:
    row = await connection.fetchrow(_DUE)
    assert row is not None, "a SELECT without FROM always answers"  # noqa: S101
    return DueTimes(*row)
