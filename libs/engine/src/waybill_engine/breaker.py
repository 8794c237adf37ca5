"""The circuit breaker: when something jobs lean on is down, they wait for it instead of burning their attempts.

One row per dependency, the same for the whole fleet. Closed, workers count their calls into buckets of time (`record`)
and the failures of a window open it. Open, nothing that leans on it is claimed (`gate`). When its time is up, the first
claim that comes by half-opens it: a few jobs may try, and their ends (`probe_result`) close it or open it for longer.

Nobody holds a probe. What runs and began in this half-open period is one, so a worker that dies leaves nothing to
clean up: its probe is over when its job is rescued. Every transition is one statement, guarded by the state it leaves,
that writes its own event and tells the workers to look: of many who try, one changes the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from waybill.pg_text import storable
from waybill_engine.breaker_models import BreakerState

if TYPE_CHECKING:
    from waybill.config import WorkerSettings
    from waybill.db.database import Connection

_REGISTER_KINDS = """
INSERT INTO kinds (name, dependency)
SELECT * FROM unnest($1::text[], $2::text[]) AS mine (name, dependency) ORDER BY name
    ON CONFLICT (name) DO UPDATE SET dependency = excluded.dependency
 WHERE kinds.dependency IS DISTINCT FROM excluded.dependency
"""

_FORGET_EVENTS = "DELETE FROM breaker_events WHERE at < now() - interval '90 days'"

# Buckets are laid out from the moment counting began, so that none straddles it. Locked in the order of names; what is
# too old to count goes by the way, unless somebody else is clearing it away already.
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

# `counted_from` must be the one that was judged by: a reset that comes in between has forgiven these failures.
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

# Claims do not queue up behind each other here: whoever finds a row locked leaves the probes to whoever holds it. A
# transaction that began before the period did must not start probes in it: by their `started_at` they would not count.
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

# Probes in flight, found by who holds them: an index that has only running jobs in it. OFFSET keeps the inner select
# from becoming a join that could be turned around.
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

# The period's own beginning is the guard: what a probe of an earlier period found out is out of date.
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
"""Seconds after which a claim that found a breaker's row locked may have more luck."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When breakers open and close. The settings `WAYBILL_BREAKER_…` say what each number means."""

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
    """What a claim may take of a dependency whose breaker is not closed."""

    room: int
    """How many of its jobs, of all its kinds together, this claim may start. Each of them is a probe."""
    since: datetime | None = None
    """The half-open period they belong to, for their leases; none without room."""
    look_in: float | None = None
    """Seconds until it is worth another look, though nobody will say so; none if somebody will."""


async def register_kinds(connection: Connection, dependencies: Mapping[str, str | None]) -> None:
    """Say what each kind this worker serves leans on. Without it, its probes would not be counted."""
    names = sorted(dependencies)
    await connection.execute(_REGISTER_KINDS, names, [dependencies[name] for name in names])


async def forget_old_events(connection: Connection) -> None:
    """A breaker that opens and closes for years must not fill a disk."""
    await connection.execute(_FORGET_EVENTS)


async def record(connection: Connection, counts: Sequence[tuple[str, int, int]], policy: BreakerPolicy) -> set[str]:
    """Add (name, calls, failures) to what the fleet has counted; the answer is which breakers this opened."""
    names = [name for name, _, _ in counts]
    async with connection.transaction():
        await connection.execute(
            _COUNT, names, [calls for _, calls, _ in counts], [failures for _, _, failures in counts], policy.window
        )
        # A statement of its own: by now it sees what others added while we waited for a bucket.
        opened = await connection.fetch(
            _OPEN, names, policy.window, policy.min_calls, policy.failure_share, policy.open_for
        )
    return {row["name"] for row in opened}


async def gate(connection: Connection, names: Sequence[str], policy: BreakerPolicy) -> dict[str, Admission]:
    """What may be claimed of these dependencies; those that are closed are not in the answer.

    To be asked in the claim's own transaction, before the claim: until it ends, nobody else is granted any room.
    """
    standing = await connection.fetch(_NOT_CLOSED, names)
    gates = {row["name"]: Admission(room=0, look_in=row["opens_in"]) for row in standing}
    probed = [row["name"] for row in standing if row["state"] == BreakerState.HALF_OPEN or _is_due(row["opens_in"])]
    if not probed:
        return gates
    gates |= dict.fromkeys(probed, Admission(room=0, look_in=_SOON))
    locked = [row["name"] for row in await connection.fetch(_LOCK_PROBED, probed)]
    if any(row["state"] == BreakerState.OPEN for row in standing if row["name"] in locked):
        await connection.execute(_HALF_OPEN, locked)
    # After the lock, so that every claim which held it before is seen.
    for row in await connection.fetch(_PROBES, locked) if locked else ():
        room = policy.probes - row["in_flight"] - row["successes"]
        # Never none while nobody tries: after `probes` was lowered, the successes alone could fill it.
        room = max(room, 0 if row["in_flight"] else 1)
        gates[row["name"]] = Admission(room, row["since"]) if room else Admission(room=0)
    return gates


def _is_due(opens_in: float | None) -> bool:
    return opens_in is not None and opens_in <= 0


async def probe_result(
    connection: Connection, name: str, *, ok: bool, since: datetime, policy: BreakerPolicy, reason: str | None = None
) -> BreakerState | None:
    """A probe of the half-open period `since` met the dependency: the state after it, or none if that period is over.

    In the transaction that ends the probe's run, after its fence: then it counts once, and only for the job's owner.
    """
    if ok:
        state = await connection.fetchval(_PROBE_SUCCEEDED, name, since, policy.probes)
    else:
        why = storable(reason)[:500] if reason else "A probe failed."
        state = await connection.fetchval(_PROBE_FAILED, name, since, policy.open_for, policy.open_at_most, why)
    return BreakerState(state) if state else None


async def held_for(connection: Connection, name: str, policy: BreakerPolicy) -> float | None:
    """Seconds a job that was let down should stay away beyond its own wait; none if the breaker is closed."""
    (row,) = await connection.fetch(_NOT_CLOSED, [name]) or (None,)
    if row is None:
        return None
    # What an operator tripped for a day may be reset in a minute, and nobody calls a scheduled job back.
    return min(max(row["opens_in"] or 0.0, 0.0), policy.open_at_most)
