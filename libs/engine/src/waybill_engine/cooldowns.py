"""Cool-downs: a dependency said when to come back (`Retry-After`), and the whole fleet stays away for that long.

A cool-down lasts at least a second. If the dependency asks again before anything succeeded, it lasts twice as long as
the last one, up to the longest time that a breaker stays open. When it is over, calls come back gradually (`admit` in
`breaker`). It is no failure, and a job that waits for it spends no attempt (`excuses`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill_engine.breaker import BreakerPolicy
from waybill_engine.rules import RETURN_SECONDS

if TYPE_CHECKING:
    from waybill.db.database import Connection

SHORTEST = 1.0
"""Seconds. A server that says "at once" is called once a second, not as fast as workers can."""

# While a cool-down lasts, the answers of calls that were already under way hardly change it: a thousand of them must
# not write the row a thousand times. Only the first of several cool-downs in a row leaves an event.
_COOL_DOWN = f"""
WITH before AS MATERIALIZED (
    SELECT cooldown_until FROM breakers WHERE name = $1
), asked AS (
    INSERT INTO breakers (name, state, cooldown_until, cooldown_seconds)
    VALUES ($1, 'closed', now() + $2::float8 * interval '1 second', $2::float8)
        ON CONFLICT (name) DO UPDATE
           SET cooldown_seconds = least($3::float8, greatest($2::float8,
                   CASE WHEN breakers.cooldown_until > now() THEN 1 ELSE 2 END * breakers.cooldown_seconds)),
               cooldown_until = now() + interval '1 second' * least($3::float8, greatest($2::float8,
                   CASE WHEN breakers.cooldown_until > now() THEN 1 ELSE 2 END * breakers.cooldown_seconds))
         WHERE COALESCE(breakers.cooldown_until < now() + 0.9 * $2::float8 * interval '1 second', true)
    RETURNING name, state, cooldown_until
), history AS (
    INSERT INTO breaker_events (name, at, event, detail)
    SELECT name, now(), 'asked_to_wait', jsonb_build_object('until', cooldown_until)
      FROM asked
     WHERE state = 'closed'
       AND NOT EXISTS (SELECT FROM before WHERE cooldown_until > now() - interval '{RETURN_SECONDS} seconds')
)
SELECT count(pg_notify('waybill_control', 'look')) FROM asked
"""  # noqa: S608 - made of constants


def seconds_to_cool(asked: float, policy: BreakerPolicy) -> float:
    """How long the fleet stays away from a dependency that asked for so many seconds."""
    return min(max(asked, SHORTEST), policy.open_at_most)


async def cool_down(connection: Connection, name: str, asked: float, policy: BreakerPolicy) -> None:
    """Keep the whole fleet away from a dependency, because it asked for that."""
    await connection.execute(_COOL_DOWN, name, seconds_to_cool(asked, policy), policy.open_at_most)
