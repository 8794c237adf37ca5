"""Scheduled jobs become claimable when they are due. Claims never see a job before that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill_engine.announcements import ANNOUNCE_LANES
from waybill_engine.due_times import next_job_in
from waybill_engine.sequences import MISSED_TURN_IN

if TYPE_CHECKING:
    from waybill.db.database import Connection

# The statement's snapshot still shows what it promotes as scheduled, so it asks for what is due later than now.
_PROMOTE = f"""
WITH due AS MATERIALIZED (
    SELECT id FROM jobs
     WHERE state = 'scheduled' AND run_at <= now()
     ORDER BY run_at
     LIMIT $1
       FOR UPDATE SKIP LOCKED
), ready AS (
    UPDATE jobs SET state = 'queued', updated_at = now()
     WHERE id = ANY (ARRAY(SELECT id FROM due))
    RETURNING id, queue, kind, priority, tenant
), {ANNOUNCE_LANES}
SELECT (SELECT count(*) FROM ready) AS promoted,
       ({next_job_in("now()")}) AS next_in,
       ({MISSED_TURN_IN}) IS NOT NULL AS missed_turns
  FROM announced
"""  # noqa: S608 - made of constants


@dataclass(frozen=True, slots=True)
class Promotion:
    count: int
    """How many jobs became claimable."""
    next_in: float | None
    """Seconds until the next scheduled job is due, if there is one."""
    missed_turns: bool
    """There are sequences that somebody could not advance; see `sequences.take_missed_turns`."""


async def promote_due(connection: Connection, limit: int = 1000) -> Promotion:
    """Queue up to `limit` scheduled jobs that are due, and announce their lanes."""
    row = await connection.fetchrow(_PROMOTE, limit)
    assert row is not None, "an aggregate always answers"  # noqa: S101
    return Promotion(row["promoted"], row["next_in"], row["missed_turns"])
