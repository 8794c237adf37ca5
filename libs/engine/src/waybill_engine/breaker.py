"""The circuit breaker: while a service that jobs need is down, they wait for it instead of using up their attempts.

There is one row per dependency, the same for the whole fleet. While the breaker is closed, workers count their calls
into buckets of time (`record`), and too many failures within a window open it. While it is open, no job that needs the
dependency is claimed (`admit`). When its time is up, the next claim half-opens it: a few jobs, the probes, may try, and
their ends (`probe_result`) close it or open it for longer.

Nobody owns a probe. A probe is any job of the dependency that started in this half-open period, so a worker that dies
leaves nothing to clean up: its probe is over when its job is rescued. Every transition is one statement that is guarded
by the state it leaves, writes its own event and tells the workers to look. If many try it at once, one changes the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from waybill.pg_text import storable
from waybill_engine.breaker_models import BreakerState

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill_engine.settings import WorkerSettings

_REGISTER_KINDS = """
INSERT INTO kinds (name, dependency)
SELECT * FROM unnest($1::text[], $2::text[]) AS mine (name, dependency) ORDER BY name
    ON CONFLICT (name) DO UPDATE SET dependency = excluded.dependency
 WHERE kinds.dependency IS DISTINCT FROM excluded.dependency
"""

_FORGET_EVENTS = "DELETE FROM breaker_events WHERE at < now() - interval '90 days'"

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
INSERT INTO breaker_counts (name, bucket, calls, failures)
SELECT mine.name, date_bin($4::float8 / 30 * interval '1 second', now(), COALESCE(counted_from, 'epoch')),
       mine.calls, mine.failures
  FROM unnest($1::text[], $2::int[], $3::int[]) AS mine (name, calls, failures)
  LEFT JOIN breakers ON breakers.name = mine.name
 ORDER BY mine.name
    ON CONFLICT (name, bucket) DO UPDATE
       SET calls = breaker_counts.calls + excluded.calls, failures = breaker_counts.failures + excluded.failures
"""

# `counted_from` must not have changed since the failures were counted: a reset in between has forgiven them.
_OPEN = """
WITH judged AS MATERIALIZED (
    SELECT counts.name, COALESCE(counted_from, 'epoch') AS counted_from,
           sum(counts.calls) AS calls, sum(counts.failures) AS failures
      FROM breaker_counts AS counts LEFT JOIN breakers ON breakers.name = counts.name
     WHERE counts.name = ANY ($1::text[])
       AND COALESCE(breakers.state, 'closed') = 'closed'
       AND counts.bucket >= COALESCE(counted_from, 'epoch')
       AND counts.bucket > now() - $2::float8 * interval '1 second'
     GROUP BY 1, 2
    HAVING sum(counts.calls) >= $3::int AND sum(counts.failures) >= $4::float8 * sum(counts.calls)
), opened AS (
    INSERT INTO breakers (name, state, since, open_until, open_seconds, counted_from, reason)
    SELECT name, 'open', now(), now() + $5::float8 * interval '1 second', $5::float8, counted_from,
           format('%s of %s calls failed', failures, calls)
      FROM judged
     ORDER BY name
        ON CONFLICT (name) DO UPDATE
           SET state = 'open', since = now(), open_until = excluded.open_until, successes = 0,
               open_seconds = excluded.open_seconds, reason = excluded.reason
         WHERE breakers.state = 'closed' AND breakers.counted_from = excluded.counted_from
    RETURNING name, open_until, reason
), history AS (
    INSERT INTO breaker_events (name, at, event, detail)
    SELECT name, now(), 'opened', jsonb_build_object(
               'reason', reason, 'until', open_until, 'calls', calls, 'failures', failures)
      FROM opened JOIN judged USING (name)
)
SELECT name, count(pg_notify('waybill_control', 'look')) FROM opened GROUP BY name
"""

_NOT_CLOSED = """
SELECT name, state, extract(epoch FROM open_until - now())::float8 AS opens_in
  FROM breakers
 WHERE name = ANY ($1::text[]) AND state <> 'closed'
"""

# Claims do not queue up behind each other here: a claim that finds a row locked leaves the probes to the other one. A
# transaction that began before the period must not start probes in it: by their `started_at` they would not count.
_LOCK_PROBED = """
SELECT name FROM breakers
 WHERE name = ANY ($1::text[])
   AND ((state = 'half_open' AND since <= now()) OR (state = 'open' AND open_until <= now()))
 ORDER BY name
   FOR UPDATE SKIP LOCKED
"""

_HALF_OPEN = """
WITH changed AS (
    UPDATE breakers SET state = 'half_open', since = now(), open_until = NULL, successes = 0
     WHERE name = ANY ($1::text[]) AND state = 'open'
    RETURNING name
), history AS (
    INSERT INTO breaker_events (name, at, event, detail) SELECT name, now(), 'half_opened', '{}' FROM changed
)
SELECT name, count(pg_notify('waybill_control', 'look')) FROM changed GROUP BY name
"""

# Probes in flight are found through their workers, in an index that has only running jobs. OFFSET keeps the inner
# select from becoming a join that could be turned around.
_PROBES = """
SELECT probed.name, probed.since, probed.successes,
       (SELECT count(*)
          FROM workers, LATERAL (
                   SELECT FROM jobs
                    WHERE lease_owner = workers.id AND kind = ANY (probed.kinds) AND started_at >= probed.since
                   OFFSET 0
               ) AS probe
         WHERE workers.state IN ('active', 'draining')) AS in_flight
  FROM (SELECT name, since, successes, ARRAY(SELECT name FROM kinds WHERE dependency = breakers.name) AS kinds
          FROM breakers
         WHERE name = ANY ($1::text[]) AND state = 'half_open'
        OFFSET 0) AS probed
"""

# The beginning of the period is the guard: the result of a probe of an earlier period is out of date.
_PROBE_SUCCEEDED = """
WITH counted AS (
    UPDATE breakers
       SET successes = successes + 1,
           state = CASE WHEN successes + 1 >= $3 THEN 'closed' ELSE state END,
           since = CASE WHEN successes + 1 >= $3 THEN now() ELSE since END,
           counted_from = CASE WHEN successes + 1 >= $3 THEN now() ELSE counted_from END,
           open_seconds = CASE WHEN successes + 1 >= $3 THEN 0 ELSE open_seconds END,
           reason = CASE WHEN successes + 1 >= $3 THEN NULL ELSE reason END
     WHERE name = $1 AND state = 'half_open' AND since = $2
    RETURNING name, state, successes
), history AS (
    INSERT INTO breaker_events (name, at, event, detail)
    SELECT name, now(), 'closed', jsonb_build_object('successes', successes) FROM counted WHERE state = 'closed'
), told AS (
    SELECT count(pg_notify('waybill_control', 'look')) FROM counted WHERE state = 'closed'
)
SELECT counted.state FROM counted, told
"""

_PROBE_FAILED = """
WITH changed AS (
    UPDATE breakers
       SET state = 'open', since = now(), successes = 0, reason = $5,
           open_seconds = least(greatest(2 * open_seconds, $3::float8), $4::float8),
           open_until = now() + least(greatest(2 * open_seconds, $3::float8), $4::float8) * interval '1 second'
     WHERE name = $1 AND state = 'half_open' AND since = $2
    RETURNING name, state, open_until, reason
), history AS (
    INSERT INTO breaker_events (name, at, event, detail)
    SELECT name, now(), 'reopened', jsonb_build_object('reason', reason, 'until', open_until) FROM changed
), told AS (
    SELECT count(pg_notify('waybill_control', 'look')) FROM changed
)
SELECT changed.state FROM changed, told
"""

_SOON = 0.05
"""Seconds after which a claim that found a breaker's row locked tries again."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When breakers open and close. The settings `WAYBILL_BREAKER_…` explain each number."""

    window: float = 300.0
    failure_share: float = 0.5
    min_calls: int = 10
    open_for: float = 30.0
    open_at_most: float = 300.0
    probes: int = 2

    @classmethod
    def of(cls, settings: WorkerSettings) -> BreakerPolicy:
        return cls(
            window=settings.breaker_window,
            failure_share=settings.breaker_failure_share,
            min_calls=settings.breaker_min_calls,
            open_for=settings.breaker_open,
            open_at_most=settings.breaker_open_max,
            probes=settings.breaker_probes,
        )


@dataclass(frozen=True, slots=True)
class Admission:
    """How many jobs a claim may take that need a dependency whose breaker is not closed."""

    room: int
    """How many of these jobs, of all kinds together, this claim may start. Each of them is a probe."""
    since: datetime | None = None
    """When the half-open period that they belong to began; None without room."""
    look_in: float | None = None
    """Seconds until it is worth another look; None if an announcement will say so."""


async def register_kinds(connection: Connection, dependencies: Mapping[str, str | None]) -> None:
    """Record the dependency of each kind that this worker serves, so that its probes are counted."""
    names = sorted(dependencies)
    await connection.execute(_REGISTER_KINDS, names, [dependencies[name] for name in names])


async def forget_old_events(connection: Connection) -> None:
    """Delete events older than 90 days: a breaker that opens and closes for years must not fill a disk."""
    await connection.execute(_FORGET_EVENTS)


async def record(connection: Connection, counts: Sequence[tuple[str, int, int]], policy: BreakerPolicy) -> set[str]:
    """Add (name, calls, failures) to what the fleet has counted, and return the breakers that this opened."""
    names = [name for name, _, _ in counts]
    async with connection.transaction():
        await connection.execute(
            _COUNT, names, [calls for _, calls, _ in counts], [failures for _, _, failures in counts], policy.window
        )
        # A statement of its own, so that it sees what others added while we waited for a bucket.
        opened = await connection.fetch(
            _OPEN, names, policy.window, policy.min_calls, policy.failure_share, policy.open_for
        )
    return {row["name"] for row in opened}


async def admit(connection: Connection, names: Sequence[str], policy: BreakerPolicy) -> dict[str, Admission]:
    """How many jobs may be claimed that need these dependencies. Those whose breaker is closed are not in the answer.

    Call it in the claim's own transaction, before the claim: until that ends, nobody else is granted any room.
    """
    not_closed = await connection.fetch(_NOT_CLOSED, names)
    admissions = {row["name"]: Admission(room=0, look_in=row["opens_in"]) for row in not_closed}
    probed = [row["name"] for row in not_closed if row["state"] == BreakerState.HALF_OPEN or _is_due(row["opens_in"])]
    if not probed:
        return admissions
    admissions |= dict.fromkeys(probed, Admission(room=0, look_in=_SOON))
    locked = [row["name"] for row in await connection.fetch(_LOCK_PROBED, probed)]
    if any(row["state"] == BreakerState.OPEN for row in not_closed if row["name"] in locked):
        await connection.execute(_HALF_OPEN, locked)
    # After the lock, so that it sees every claim that had the lock before.
    for row in await connection.fetch(_PROBES, locked) if locked else ():
        room = policy.probes - row["in_flight"] - row["successes"]
        # Always one while nobody tries: after `probes` was lowered, the successes alone could use up the room.
        room = max(room, 0 if row["in_flight"] else 1)
        admissions[row["name"]] = Admission(room, row["since"]) if room else Admission(room=0)
    return admissions


def _is_due(opens_in: float | None) -> bool:
    return opens_in is not None and opens_in <= 0


async def probe_result(
    connection: Connection, name: str, *, ok: bool, since: datetime, policy: BreakerPolicy, reason: str | None = None
) -> BreakerState | None:
    """Record the result of a probe that started in the half-open period `since`.

    Returns the breaker's state after it, or None if that period is over. Call it in the transaction that ends the
    probe's run, after its fence: then it counts once, and only for the job's owner.
    """
    if ok:
        state = await connection.fetchval(_PROBE_SUCCEEDED, name, since, policy.probes)
    else:
        why = storable(reason)[:500] if reason else "A probe failed."
        state = await connection.fetchval(_PROBE_FAILED, name, since, policy.open_for, policy.open_at_most, why)
    return BreakerState(state) if state else None


async def blocked_for(connection: Connection, name: str, policy: BreakerPolicy) -> float | None:
    """Seconds that a job whose dependency failed should wait beyond its own delay; None if the breaker is closed."""
    (row,) = await connection.fetch(_NOT_CLOSED, [name]) or (None,)
    if row is None:
        return None
    # A breaker that was tripped for a day may be reset in a minute, and a scheduled job does not hear of that.
    return min(max(row["opens_in"] or 0.0, 0.0), policy.open_at_most)
