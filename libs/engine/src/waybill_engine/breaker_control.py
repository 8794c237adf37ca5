"""What a person may do to circuit breakers and see of them: trip, reset, list, history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill import audit
from waybill.pg_text import storable
from waybill_engine import counts_of_jobs
from waybill_engine.breaker_models import BreakerState
from waybill_engine.rules import WORKER_MAY_CLAIM, dependencies_of

if TYPE_CHECKING:
    from waybill.db.database import Connection

_TRIP = """
WITH changed AS (
    INSERT INTO breakers (name, state, since, open_until, open_seconds, reason)
    VALUES ($1, 'open', now(), now() + $3::float8 * interval '1 second', COALESCE($3::float8, 0), $2)
        ON CONFLICT (name) DO UPDATE
           SET state = 'open', since = now(), open_until = excluded.open_until, successes = 0,
               open_seconds = excluded.open_seconds, reason = excluded.reason, failed_in_a_row = 0, away_in_a_row = 0
    RETURNING name, open_until, reason
), history AS (
    INSERT INTO breaker_events (name, at, event, detail)
    SELECT name, now(), 'tripped', jsonb_build_object('reason', reason, 'until', open_until) FROM changed
)
SELECT count(pg_notify('waybill_control', 'look')) FROM changed
"""

_RESET = """
WITH changed AS (
    UPDATE breakers
       SET state = 'closed', since = now(), open_until = NULL, open_seconds = 0, successes = 0, counted_from = now(),
           reason = NULL, cooldown_until = NULL, cooldown_seconds = 0, failed_in_a_row = 0, away_in_a_row = 0
     WHERE name = $1 AND (state <> 'closed' OR cooldown_until > now())
    RETURNING name
), history AS (
    INSERT INTO breaker_events (name, at, event, detail) SELECT name, now(), 'reset', '{}' FROM changed
)
SELECT count(pg_notify('waybill_control', 'look')) FROM changed
"""

# A dependency is known when a kind names it or its breaker has a row. Blocked jobs are the queued jobs of its kinds in
# queues that some worker serves; jobs elsewhere wait for a worker. LIMIT bounds the count.
_LIST = f"""
SELECT known.name, COALESCE(breakers.state, 'closed') AS state, breakers.since, breakers.open_until, breakers.successes,
       breakers.reason, breakers.cooldown_until, known.kinds, COALESCE(recent.calls, 0) AS calls,
       COALESCE(recent.failures, 0) AS failures, COALESCE(blocked.jobs, 0) AS blocked
  FROM (SELECT name, array_agg(kind ORDER BY kind) FILTER (WHERE kind IS NOT NULL) AS kinds
          FROM (SELECT unnest({dependencies_of("kinds")}) AS name, name AS kind FROM kinds
                 UNION ALL
                SELECT name, NULL FROM breakers) AS named
         GROUP BY name) AS known
  LEFT JOIN breakers ON breakers.name = known.name
  LEFT JOIN LATERAL (
           SELECT sum(calls)::bigint AS calls, sum(failures)::bigint AS failures
             FROM breaker_counts
            WHERE breaker_counts.name = known.name AND bucket > now() - $2 * interval '1 second'
              AND bucket >= COALESCE(breakers.counted_from, 'epoch')
       ) AS recent ON true
  LEFT JOIN LATERAL (
           SELECT count(*) AS jobs
             FROM (SELECT FROM (SELECT DISTINCT unnest(queues) AS name FROM workers
                                 WHERE {WORKER_MAY_CLAIM}) AS served,
                          unnest(known.kinds) AS lane,
                          LATERAL (SELECT FROM jobs
                                    WHERE queue = served.name AND kind = lane AND state = 'queued' AND NOT isolate
                                    LIMIT $3 + 1) AS waiting
                    LIMIT $3 + 1) AS counted
       ) AS blocked ON breakers.state <> 'closed' OR breakers.cooldown_until > now()
 WHERE $1::text IS NULL OR known.name = $1
 ORDER BY known.name
"""  # noqa: S608 - made of constants

_NOT_CLOSED = """
SELECT open_until FROM breakers WHERE name = ANY ($1::text[]) AND state <> 'closed'
 ORDER BY open_until DESC NULLS FIRST LIMIT 1
"""

_EVENTS = "SELECT at, event, detail FROM breaker_events WHERE name = $1 ORDER BY id DESC LIMIT $2"

RECENT = 300.0
"""The calls of so many seconds are shown to a person. The workers' own window is a setting."""

MOST_COUNTED = 1000
"""Beyond this many blocked jobs, nobody cares about the number, and counting them would cost too much."""


@dataclass(frozen=True, slots=True)
class BreakerStatus:
    name: str
    state: BreakerState
    since: datetime | None
    """When this state began; None if nothing ever happened to it."""
    open_until: datetime | None
    """While it is open, when probes may start. None means when an operator resets it."""
    successes: int
    """How many probes succeeded in this half-open period."""
    reason: str | None
    kinds: Sequence[str]
    """The kinds that need it."""
    calls: int
    failures: int
    """Calls and failures of the last five minutes, as far as they count."""
    cooldown_until: datetime | None
    """Until when the dependency asked us to wait, if it ever did; it may be past."""
    blocked: int
    """Queued jobs that wait for it, counted up to one more than `MOST_COUNTED`."""


@dataclass(frozen=True, slots=True)
class BreakerHappening:
    """One line of a breaker's history."""

    at: datetime
    event: str
    detail: dict[str, Any]


async def trip(connection: Connection, name: str, reason: str, seconds: float | None = None) -> None:
    """Open a breaker by hand: for `seconds`, after which probes may try, or until it is reset."""
    async with connection.transaction():
        await connection.execute(_TRIP, name, storable(reason), seconds)
        counts_of_jobs.breaker_changed(connection, name, BreakerState.OPEN)
        detail = {"reason": reason, "seconds": seconds}
        await audit.record(connection, "breaker.tripped", f"breaker:{name}", detail=detail)


async def reset(connection: Connection, name: str) -> bool:
    """Close a breaker by hand, end a cool-down, and forget what was counted. False if there was nothing to end."""
    async with connection.transaction():
        done = bool(await connection.fetchval(_RESET, name))
        if done:
            counts_of_jobs.breaker_changed(connection, name, BreakerState.CLOSED)
            await audit.record(connection, "breaker.reset", f"breaker:{name}")
    return done


async def not_closed(connection: Connection, names: Sequence[str]) -> Mapping[str, Any] | None:
    """The breaker of these that stays open or half open longest, with `open_until`; None while all are closed."""
    row = await connection.fetchrow(_NOT_CLOSED, names)
    return dict(row) if row is not None else None


async def list_breakers(connection: Connection, name: str | None = None) -> list[BreakerStatus]:
    """The breaker of every dependency that a kind names, whether anything ever happened to it or not; or just one."""
    return [
        BreakerStatus(
            name=row["name"],
            state=BreakerState(row["state"]),
            since=row["since"],
            open_until=row["open_until"],
            successes=row["successes"] or 0,
            reason=row["reason"],
            kinds=row["kinds"] or [],
            calls=row["calls"],
            failures=row["failures"],
            cooldown_until=row["cooldown_until"],
            blocked=row["blocked"],
        )
        for row in await connection.fetch(_LIST, name, RECENT, MOST_COUNTED)
    ]


async def history(connection: Connection, name: str, limit: int = 50) -> list[BreakerHappening]:
    """A breaker's events, newest first. They are kept for 90 days."""
    return [
        BreakerHappening(row["at"], row["event"], json.loads(row["detail"]))
        for row in await connection.fetch(_EVENTS, name, limit)
    ]
