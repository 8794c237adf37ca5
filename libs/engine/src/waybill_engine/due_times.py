"""What is due next: a scheduled job, or a tick of a schedule. Both in one question, which idle workers ask all day."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from waybill.db.database import Connection

# Parents that wait for their children are due at infinity, and not by the clock.
_DUE = """
SELECT (SELECT extract(epoch FROM run_at - now())::float8 FROM jobs
         WHERE state = 'scheduled' AND run_at < 'infinity' ORDER BY run_at LIMIT 1) AS job,
       (SELECT extract(epoch FROM min(next_at) - now())::float8 FROM schedules WHERE paused_at IS NULL) AS tick
"""


class Due(NamedTuple):
    """Seconds until then, not more than 0 when it is due already; None when there is nothing."""

    job: float | None
    tick: float | None


async def next_due(connection: Connection) -> Due:
    row = await connection.fetchrow(_DUE)
    assert row is not None, "it has no FROM"  # noqa: S101
    return Due(*row)
