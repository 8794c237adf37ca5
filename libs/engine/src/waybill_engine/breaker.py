"""The circuit breaker: while a service that jobs need is down, they wait for it instead of using up their attempts.

There is one row per dependency, the same for the whole fleet. While the breaker is closed, workers report how their
calls end, and too many failures open it (`breaker_counts`). While it is open, no job that needs the dependency is
claimed (`admit`). When its time is up, the next claim half-opens it: a few jobs, the probes, may try, and their ends
(`probe_result`) close it or open it for longer. A dependency that asked us to wait is left alone, too (`cooldowns`).

Nobody owns a probe. A probe is any job of the dependency that started in this half-open period, so a worker that dies
leaves nothing to clean up: its probe is over when its job is rescued. Every transition is one statement that is guarded
by the state it leaves, writes its own event and tells the workers to look. If many try it at once, one changes the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import asyncpg

from waybill.pg_text import storable
from waybill_engine import counts_of_jobs
from waybill_engine.breaker_models import BreakerState
from waybill_engine.rules import BREAKER_LIMITS, RETURN_SECONDS, dependencies_of

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill_engine.settings import WorkerSettings

# Workers of release 0.1.0 know one dependency: the first.
_REGISTER_KINDS = """
INSERT INTO kinds (name, dependency, dependencies)
SELECT name, (string_to_array(dependencies, ','))[1], string_to_array(dependencies, ',')
  FROM unnest($1::text[], $2::text[]) AS mine (name, dependencies)
 ORDER BY name
    ON CONFLICT (name) DO UPDATE SET dependency = excluded.dependency, dependencies = excluded.dependencies
 WHERE kinds.dependency IS DISTINCT FROM excluded.dependency
    OR kinds.dependencies IS DISTINCT FROM excluded.dependencies
"""

_FORGET_EVENTS = "DELETE FROM breaker_events WHERE at < now() - interval '90 days'"

_LIMITED = f"""
SELECT name, state, extract(epoch FROM open_until - now())::float8 AS opens_in,
       extract(epoch FROM cooldown_until - now())::float8 AS cools_in
  FROM breakers
 WHERE name = ANY ($1::text[]) AND {BREAKER_LIMITS}
"""  # noqa: S608 - made of constants

# Claims do not queue up behind each other here: a claim that finds a row locked leaves the probes to the other one. A
# transaction that began before the period must not start probes in it: by their `started_at` they would not count.
_LOCK_ADMITTING = """
SELECT name FROM breakers
 WHERE name = ANY ($1::text[]) AND COALESCE(cooldown_until <= now(), true)
   AND (state = 'closed' OR (state = 'half_open' AND since <= now()) OR (state = 'open' AND open_until <= now()))
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

# Runs in flight are found through their workers, in an index that has only running jobs. OFFSET keeps the inner
# select from becoming a join that could be turned around.
_IN_FLIGHT = f"""
SELECT limited.name, limited.state, limited.since, limited.successes, limited.cooled_for, limited.busy,
       (SELECT count(*)
          FROM workers, LATERAL (
                   SELECT FROM jobs
                    WHERE lease_owner = workers.id AND kind = ANY (limited.kinds) AND started_at >= limited.since
                   OFFSET 0
               ) AS run
         WHERE workers.state IN ('active', 'draining')) AS in_flight
  FROM (SELECT name, state, CASE WHEN state = 'half_open' THEN since ELSE cooldown_until END AS since, successes,
               extract(epoch FROM now() - cooldown_until)::float8 AS cooled_for, cooldown_seconds = 0 AS busy,
               ARRAY(SELECT kinds.name FROM kinds WHERE breakers.name = ANY ({dependencies_of("kinds")})) AS kinds
          FROM breakers
         WHERE name = ANY ($1::text[]) AND state <> 'open' AND {BREAKER_LIMITS}
        OFFSET 0) AS limited
"""  # noqa: S608 - made of constants

# The beginning of the period is the guard: the result of a probe of an earlier period is out of date.
_PROBE_SUCCEEDED = """
WITH counted AS (
    UPDATE breakers
       SET successes = successes + 1,
           state = CASE WHEN successes + 1 >= $3 THEN 'closed' ELSE state END,
           since = CASE WHEN successes + 1 >= $3 THEN now() ELSE since END,
           counted_from = CASE WHEN successes + 1 >= $3 THEN now() ELSE counted_from END,
           open_seconds = CASE WHEN successes + 1 >= $3 THEN 0 ELSE open_seconds END,
           failed_in_a_row = 0, away_in_a_row = 0, cooldown_seconds = 0,
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

# A probe that was asked to wait did not find the dependency well, but it found somebody: the next probes follow after
# that wait, not after twice the last one.
_PROBE_FAILED = """
WITH changed AS (
    UPDATE breakers
       SET state = 'open', since = now(), successes = 0, reason = $5, open_seconds = wait.seconds,
           open_until = now() + wait.seconds * interval '1 second'
      FROM (SELECT name AS dependency,
                   least(CASE WHEN $6::float8 IS NULL THEN greatest(2 * open_seconds, $3::float8)
                              ELSE greatest(open_seconds, $6::float8) END, $4::float8) AS seconds
              FROM breakers) AS wait
     WHERE name = $1 AND wait.dependency = $1 AND state = 'half_open' AND since = $2
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
_NEXT_FEW = 0.25
"""Seconds after which more calls may start, while they come back gradually."""
_AHEAD_IF_BUSY = 3
"""How many doublings ahead they start if the dependency did some work during its cool-down."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When breakers open and close. The settings `WAYBILL_BREAKER_…` explain each number."""

    window: float = 300.0
    failure_share: float = 0.5
    min_calls: int = 10
    open_for: float = 30.0
    open_at_most: float = 300.0
    probes: int = 2
    failures_in_a_row: int = 5
    away_in_a_row: int = 2
    patience: float = 43200.0

    @classmethod
    def of(cls, settings: WorkerSettings) -> BreakerPolicy:
        return cls(
            window=settings.breaker_window,
            failure_share=settings.breaker_failure_share,
            min_calls=settings.breaker_min_calls,
            open_for=settings.breaker_open,
            open_at_most=settings.breaker_open_max,
            probes=settings.breaker_probes,
            failures_in_a_row=settings.breaker_failures_in_a_row,
            away_in_a_row=settings.breaker_unreachable_in_a_row,
            patience=settings.breaker_patience,
        )


@dataclass(frozen=True, slots=True)
class Admission:
    """How many jobs a claim may take that need a dependency whose breaker is not closed, or that asked us to wait."""

    room: int
    """How many of these jobs, of all kinds together, this claim may start."""
    since: datetime | None = None
    """If they are probes: when the half-open period that they belong to began."""
    look_in: float | None = None
    """Seconds until it is worth another look; None if an announcement will say so."""


async def register_kinds(connection: Connection, dependencies: Mapping[str, Sequence[str]]) -> None:
    """Record the dependencies of each kind that this worker serves, so that its probes are counted."""
    names = sorted(dependencies)
    await connection.execute(_REGISTER_KINDS, names, [",".join(dependencies[name]) for name in names])


async def forget_old_events(connection: Connection) -> None:
    """Delete events older than 90 days: a breaker that opens and closes for years must not fill a disk."""
    await connection.execute(_FORGET_EVENTS)


async def admit(connection: Connection, names: Sequence[str], policy: BreakerPolicy) -> dict[str, Admission]:
    """How many jobs may be claimed that need these dependencies. Those without a limit are not in the answer.

    Call it in the claim's own transaction, before the claim: until that ends, nobody else is granted any room.
    """
    limited = await connection.fetch(_LIMITED, names)
    admissions = {row["name"]: Admission(room=0, look_in=_nothing_before(row)) for row in limited}
    admitting = [name for name, admission in admissions.items() if admission.look_in == _SOON]
    if not admitting:
        return admissions
    locked = [row["name"] for row in await connection.fetch(_LOCK_ADMITTING, admitting)]
    if any(row["state"] == BreakerState.OPEN for row in limited if row["name"] in locked):
        for row in await connection.fetch(_HALF_OPEN, locked):
            counts_of_jobs.breaker_changed(connection, row["name"], BreakerState.HALF_OPEN)
    # After the lock, so that it sees every claim that had the lock before.
    for row in await connection.fetch(_IN_FLIGHT, locked) if locked else ():
        admissions[row["name"]] = _admission(row, policy)
    return admissions


def _nothing_before(row: asyncpg.Record) -> float | None:
    """Seconds for which nothing at all is admitted, `_SOON` if something may be now; None until it is announced."""
    cools_in = max(row["cools_in"] or 0.0, 0.0)
    if row["state"] == BreakerState.OPEN:
        if row["opens_in"] is None:
            return None
        cools_in = max(cools_in, row["opens_in"])
    return max(cools_in, _SOON)


def _admission(row: asyncpg.Record, policy: BreakerPolicy) -> Admission:
    if row["state"] == BreakerState.CLOSED:
        # Each second twice as many as in the one before, instead of everybody who waited for the cool-down at once. If
        # something succeeded meanwhile, the dependency is busy rather than sick, and can take more from the start.
        doublings = int(min(max(row["cooled_for"], 0.0), RETURN_SECONDS)) + (_AHEAD_IF_BUSY if row["busy"] else 0)
        return Admission(max(policy.probes * 2**doublings - row["in_flight"], 0), look_in=_NEXT_FEW)
    room = policy.probes - row["in_flight"] - row["successes"]
    # Always one while nobody tries: after `probes` was lowered, the successes alone could use up the room.
    room = max(room, 0 if row["in_flight"] else 1)
    return Admission(room, row["since"]) if room else Admission(room=0)


async def probe_result(
    connection: Connection,
    name: str,
    *,
    ok: bool,
    since: datetime,
    policy: BreakerPolicy,
    reason: str | None = None,
    asked: float | None = None,
) -> BreakerState | None:
    """Record the result of a probe that started in the half-open period `since`.

    `asked` is for how many seconds the dependency asked the probe to wait, if it did. Returns the breaker's state after
    it, or None if that period is over. Call it in the transaction that ends the probe's run, after its fence: then it
    counts once, and only for the job's owner.
    """
    if ok:
        state = await connection.fetchval(_PROBE_SUCCEEDED, name, since, policy.probes)
    else:
        why = storable(reason)[:500] if reason else "A probe failed."
        state = await connection.fetchval(_PROBE_FAILED, name, since, policy.open_for, policy.open_at_most, why, asked)
    if state and state != BreakerState.HALF_OPEN:
        counts_of_jobs.breaker_changed(connection, name, state)
    return BreakerState(state) if state else None
