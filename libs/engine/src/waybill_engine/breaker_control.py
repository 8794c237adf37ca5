"""What a person may do to circuit breakers, and what they see of them: trip, reset, list, look back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill.pg_text import storable
from waybill_engine.breaker_models import BreakerState

if TYPE_CHECKING:
    from waybill.db.database import Connection

_TRIP = """
WITH changed AS (
    INSERT INTO breakers (name, state, since, open_until, open_seconds, reason)
    VALUES ($1, 'open', now(), now() + $3::float8 * interval '1 second', COALESCE($3::float8, 0), $2)
        ON CONFLICT (name) DO UPDATE
           SET state = 'open', since = now(), open_until = excluded.open_until, successes = 0,
               open_seconds = excluded.open_seconds, reason = excluded.reason
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
           reason = NULL
     WHERE name = $1 AND state <> 'closed'
    RETURNING name
), history AS (
    INSERT INTO breaker_events (name, at, event, detail) SELECT name, now(), 'reset', '{}' FROM changed
)
SELECT count(pg_notify('waybill_control', 'look')) FROM changed
"""

# A dependency is known when a kind names it or its breaker has a row. Held are the queued jobs of its kinds in queues
# that somebody serves; what waits elsewhere waits for a worker. LIMIT bounds the count.
_LIST = """
SELECT known.name, COALESCE(breakers.state, 'closed') AS state, breakers.since, breakers.open_until, breakers.successes,
       breakers.reason, known.kinds, COALESCE(recent.calls, 0) AS calls, COALESCE(recent.failures, 0) AS failures,
       COALESCE(held.jobs, 0) AS held
  FROM (SELECT name, array_agg(kind ORDER BY kind) FILTER (WHERE kind IS NOT NULL) AS kinds
          FROM (SELECT dependency AS name, name AS kind FROM kinds WHERE dependency IS NOT NULL
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
                                 WHERE state = 'active' AND lease_expires_at > now()) AS served,
                          unnest(known.kinds) AS lane,
                          LATERAL (SELECT FROM jobs
                                    WHERE queue = served.name AND kind = lane AND state = 'queued' AND NOT isolate
                                    LIMIT $3 + 1) AS waiting
                    LIMIT $3 + 1) AS counted
       ) AS held ON breakers.state <> 'closed'
 WHERE $1::text IS NULL OR known.name = $1
 ORDER BY known.name
"""

_EVENTS = "SELECT at, event, detail FROM breaker_events WHERE name = $1 ORDER BY id DESC LIMIT $2"

RECENT = 300.0
"""Seconds of calls a person is shown. The workers' window is a setting of theirs."""

MOST_COUNTED = 1000
"""Beyond this many held jobs nobody cares for the number, and counting them would cost."""


@dataclass(frozen=True, slots=True)
class BreakerStatus:
    name: str
    state: BreakerState
    since: datetime | None
    """When this state began; none if nothing ever happened to it."""
    open_until: datetime | None
    """While it is open: when probes may start; none until an operator resets it."""
    successes: int
    """Probes that went well in this half-open period."""
    reason: str | None
    kinds: Sequence[str]
    """What it holds."""
    calls: int
    failures: int
    """Of the last five minutes, as far as they count."""
    held: int
    """Queued jobs that wait for it, counted up to one more than `MOST_COUNTED`."""


@dataclass(frozen=True, slots=True)
class BreakerHappening:
    """One line of a breaker's history."""

    at: datetime
    event: str
    detail: dict[str, Any]


async def trip(connection: Connection, name: str, reason: str, seconds: float | None = None) -> None:
    """Open it by hand: for `seconds`, then probes find out; without, until it is reset."""
    await connection.execute(_TRIP, name, storable(reason), seconds)


async def reset(connection: Connection, name: str) -> bool:
    """Close it by hand; what it counted is forgotten. False if it was closed."""
    return bool(await connection.fetchval(_RESET, name))


async def list_breakers(connection: Connection, name: str | None = None) -> list[BreakerStatus]:
    """Every dependency a kind names, whether anything ever happened to it or not; or just one."""
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
            held=row["held"],
        )
        for row in await connection.fetch(_LIST, name, RECENT, MOST_COUNTED)
    ]


async def history(connection: Connection, name: str, limit: int = 50) -> list[BreakerHappening]:
    """What happened to it, newest first; events are kept for 90 days."""
    return [
        BreakerHappening(row["at"], row["event"], json.loads(row["detail"]))
        for row in await connection.fetch(_EVENTS, name, limit)
    ]
