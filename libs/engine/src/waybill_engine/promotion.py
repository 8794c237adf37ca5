"""Scheduled jobs become claimable when they are due. Claims never see a job before that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from waybill_engine.announcements import ANNOUNCE_LANES, Announced
from waybill_engine.due_times import FROM_HERE_ON, next_job_in
from waybill_engine.lanes import Lane, Position
from waybill_engine.sequences import MISSED_TURN_IN

if TYPE_CHECKING:
    from waybill.db.database import Connection

# The statement's snapshot still shows what it promotes as scheduled, so it asks for what is due later than now.
_PROMOTE = f"""
WITH due AS MATERIALIZED (
    SELECT id, run_at FROM jobs
     WHERE state = 'scheduled' AND run_at <= now() AND run_at >= {FROM_HERE_ON.format(since="$3")}
     ORDER BY run_at
     LIMIT $1
       FOR UPDATE SKIP LOCKED
), promoted AS (
    UPDATE jobs SET state = 'queued', updated_at = now()
     WHERE id = ANY (ARRAY(SELECT id FROM due))
    RETURNING queue, kind, priority, tenant, owner, created_at
), by_lane AS (
    SELECT queue, kind, priority, tenant, owner, min(created_at) AS created_at, count(*) AS jobs
      FROM promoted GROUP BY queue, kind, priority, tenant, owner
), next AS MATERIALIZED (
    SELECT ({next_job_in("now()")}) AS next_in
), ready AS (
    SELECT queue, kind, priority, tenant, owner, created_at, jobs FROM by_lane WHERE $2
), {ANNOUNCE_LANES}, told AS (
    SELECT count(waybill_announce('waybill_promoted', COALESCE(next_in::text, ''))) AS times
      FROM next WHERE EXISTS (SELECT FROM by_lane)
)
SELECT queue, kind, priority, tenant, owner, created_at, jobs, next_in, ({MISSED_TURN_IN}) IS NOT NULL AS missed_turns,
       CASE WHEN (SELECT count(*) FROM due) < $1 THEN now() ELSE (SELECT max(run_at) FROM due) END AS searched
  FROM announced, told, next LEFT JOIN by_lane ON true
"""  # noqa: S608 - made of constants


@dataclass(frozen=True, slots=True)
class Promotion:
    count: int
    """How many jobs became claimable."""
    next_in: float | None
    """Seconds until the next scheduled job is due, if there is one."""
    lanes: Sequence[Announced]
    """Where they are."""
    missed_turns: bool
    """There are sequences that somebody could not advance; see `sequences.take_missed_turns`."""
    searched: datetime
    """No job is due before this, apart from those that somebody else is promoting."""


async def promote_due(
    connection: Connection, limit: int = 1000, *, announced: bool = True, since: datetime | None = None
) -> Promotion:
    """Queue up to `limit` scheduled jobs that are due, and announce their lanes, unless the caller does that.

    Jobs that are due before `since` are left out.
    """
    rows = await connection.fetch(_PROMOTE, limit, announced, since)
    lanes = [Announced(Lane(*row[:5]), Position(row["created_at"]), row["jobs"]) for row in rows if row["jobs"]]
    first = rows[0]
    return Promotion(sum(one.jobs for one in lanes), first["next_in"], lanes, first["missed_turns"], first["searched"])
