"""The counts that open breakers: how the calls of all workers to each dependency end, and how many failed in a row.

Workers report what they saw about once a second, and at once after a failure (`worker.dependencies`). A breaker opens
for any of three reasons: too large a share of the calls within a window failed; several jobs in a row failed that had
not failed before; or nobody could reach the dependency, twice in a row. The second tells an outage from one document
that the dependency chokes on again and again. The last two do not wait for old successes to leave the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill_engine import counts_of_jobs
from waybill_engine.breaker import BreakerPolicy

if TYPE_CHECKING:
    from waybill.db.database import Connection

# Buckets are laid out from the moment when counting began, so that none straddles it. They are locked in the order of
# names. Buckets that are too old to count are deleted on the way, unless another worker is deleting them already.
_COUNT = """
WITH old AS MATERIALIZED (
    SELECT name, bucket FROM breaker_counts
     WHERE name = ANY ($1::text[]) AND bucket < now() - 2 * $4::float8 * interval '1 second'
     ORDER BY name, bucket
     LIMIT 100
       FOR UPDATE SKIP LOCKED
), cleared AS (
    DELETE FROM breaker_counts USING old
     WHERE breaker_counts.name = old.name AND breaker_counts.bucket = old.bucket
)
INSERT INTO breaker_counts (name, bucket, calls, failures, succeeded_at)
SELECT mine.name, date_bin($4::float8 / 30 * interval '1 second', now(), COALESCE(counted_from, 'epoch')),
       mine.calls, mine.failures,
       CASE WHEN mine.calls > mine.failures THEN now() - mine.succeeded_ago * interval '1 second' END
  FROM unnest($1::text[], $2::int[], $3::int[], $5::float8[]) AS mine (name, calls, failures, succeeded_ago)
  LEFT JOIN breakers ON breakers.name = mine.name
 ORDER BY mine.name
    ON CONFLICT (name, bucket) DO UPDATE
       SET calls = breaker_counts.calls + excluded.calls, failures = breaker_counts.failures + excluded.failures,
           succeeded_at = greatest(breaker_counts.succeeded_at, excluded.succeeded_at)
"""

# A success ends every row, and shows that the dependency does not need longer and longer cool-downs. It creates no row:
# a dependency that never failed has none. Rows are locked in the order of names.
_COUNT_IN_A_ROW = """
WITH mine AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::int[], $3::int[], $4::bool[]) AS mine (name, failed, away, succeeded)
)
INSERT INTO breakers (name, state, failed_in_a_row, away_in_a_row)
SELECT name, 'closed', failed, away
  FROM mine
 WHERE failed > 0 OR away > 0
    OR (succeeded AND EXISTS (SELECT FROM breakers
                               WHERE breakers.name = mine.name
                                 AND (failed_in_a_row > 0 OR away_in_a_row > 0 OR cooldown_seconds > 0)))
 ORDER BY name
    ON CONFLICT (name) DO UPDATE
       SET failed_in_a_row = excluded.failed_in_a_row
                           + CASE WHEN (SELECT succeeded FROM mine WHERE mine.name = excluded.name) THEN 0
                                  ELSE breakers.failed_in_a_row END,
           away_in_a_row = excluded.away_in_a_row
                         + CASE WHEN (SELECT succeeded FROM mine WHERE mine.name = excluded.name) THEN 0
                                ELSE breakers.away_in_a_row END,
           cooldown_seconds = CASE WHEN (SELECT succeeded FROM mine WHERE mine.name = excluded.name) THEN 0
                                   ELSE breakers.cooldown_seconds END
"""

# `counted_from` must not have changed since the failures were counted: a reset in between has forgiven them.
_OPEN = """
WITH judged AS MATERIALIZED (
    SELECT asked.name, COALESCE(breakers.counted_from, 'epoch') AS counted_from, recent.calls, recent.failures,
           CASE WHEN breakers.away_in_a_row >= $7::int
                THEN format('%s calls in a row could not reach it', breakers.away_in_a_row)
                WHEN breakers.failed_in_a_row >= $6::int
                THEN format('%s jobs in a row failed', breakers.failed_in_a_row)
                WHEN recent.calls >= $3::int AND recent.failures >= $4::float8 * recent.calls
                THEN format('%s of %s calls failed', recent.failures, recent.calls)
           END AS reason
      FROM unnest($1::text[]) AS asked (name)
      LEFT JOIN breakers ON breakers.name = asked.name,
           LATERAL (
               SELECT COALESCE(sum(calls), 0)::int AS calls, COALESCE(sum(failures), 0)::int AS failures
                 FROM breaker_counts AS counts
                WHERE counts.name = asked.name
                  AND counts.bucket >= COALESCE(breakers.counted_from, 'epoch')
                  AND counts.bucket > now() - $2::float8 * interval '1 second'
           ) AS recent
     WHERE COALESCE(breakers.state, 'closed') = 'closed'
), opened AS (
    INSERT INTO breakers (name, state, since, open_until, open_seconds, counted_from, reason)
    SELECT name, 'open', now(), now() + $5::float8 * interval '1 second', $5::float8, counted_from, reason
      FROM judged
     WHERE reason IS NOT NULL
     ORDER BY name
        ON CONFLICT (name) DO UPDATE
           SET state = 'open', since = now(), open_until = excluded.open_until, successes = 0,
               open_seconds = excluded.open_seconds, reason = excluded.reason,
               failed_in_a_row = 0, away_in_a_row = 0
         WHERE breakers.state = 'closed' AND breakers.counted_from = excluded.counted_from
    RETURNING name, open_until, reason
), history AS (
    INSERT INTO breaker_events (name, at, event, detail)
    SELECT name, now(), 'opened', jsonb_build_object(
               'reason', opened.reason, 'until', open_until, 'calls', calls, 'failures', failures)
      FROM opened JOIN judged USING (name)
)
SELECT name, count(pg_notify('waybill_control', 'look')) FROM opened GROUP BY name
"""


@dataclass(slots=True)
class CallCount:
    """How calls to one dependency ended."""

    name: str
    calls: int = 0
    failures: int = 0
    failed_in_a_row: int = 0
    """How many of the failures after the last success were of jobs whose last run had not failed."""
    away_in_a_row: int = 0
    """How many of the failures after the last success could not even reach the dependency."""
    succeeded_ago: float = 0.0
    """Seconds since the last success, if there was one."""

    def add(self, *, ok: bool, fresh: bool = True, away: bool = False) -> None:
        """Count one call; `fresh` if it was for a job whose last run had not failed."""
        self.calls += 1
        if ok:
            self.failed_in_a_row = self.away_in_a_row = 0
        else:
            self.failures += 1
            self.failed_in_a_row += fresh
            self.away_in_a_row += away

    @property
    def succeeded(self) -> bool:
        return self.calls > self.failures


async def record(connection: Connection, counts: Sequence[CallCount], policy: BreakerPolicy) -> set[str]:
    """Add to what the fleet has counted, and return the breakers that this opened.

    Three statements, each of which commits by itself: the last sees what every other worker has added, and none waits
    for a second row while it holds another out of order.
    """
    counts = sorted(counts, key=lambda one: one.name)
    names = [one.name for one in counts]
    await connection.execute(
        _COUNT,
        names,
        [one.calls for one in counts],
        [one.failures for one in counts],
        policy.window,
        [one.succeeded_ago for one in counts],
    )
    await connection.execute(
        _COUNT_IN_A_ROW,
        names,
        [one.failed_in_a_row for one in counts],
        [one.away_in_a_row for one in counts],
        [one.succeeded for one in counts],
    )
    opened = await connection.fetch(
        _OPEN,
        names,
        policy.window,
        policy.min_calls,
        policy.failure_share,
        policy.open_for,
        policy.failures_in_a_row,
        policy.away_in_a_row,
    )
    for row in opened:
        counts_of_jobs.breaker_changed(connection, row["name"], "open")
    return {row["name"] for row in opened}
