"""Rates: how many jobs of a tenant, of a kind, or of both may start in some time, in the whole cluster.

A rate is one timestamp (GCRA, the algorithm of telephone networks): starts so far have paid for the time up to
`paid_up_to`, each of them `spacing` microseconds. A job may start while that lies no further ahead than the burst
allows. The spacing is chosen so that no `seconds`, wherever they begin, see more than `most` starts.

A claim locks the rows of the rates in its way, never waiting for another claim, takes no more than there is room for,
and pays in the same transaction: all processes together keep the rate by the database's clock, and a claim that is
rolled back has cost nothing. A start is a start: a job that is released or postponed does not get its place back.

A kind may have a default rate (`JobKind.default_rate`), which applies until an operator decides. A rate that an
operator lifted stays as a row without `most`, so that no default comes back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill import audit
from waybill.errors import Refused
from waybill.retention.holds import check_tenant
from waybill_engine.kinds import is_name
from waybill_engine.rules import Pace, Rate, rates_on

if TYPE_CHECKING:
    import asyncpg

    from waybill.db.database import Connection
    from waybill_engine.lanes import Lane

_MOST = 1_000_000
_LONGEST = 30 * 86400.0

RATE_OPENS_AT = "paced.paid_up_to - (paced.burst - 1) * paced.spacing * interval '1 microsecond'"
"""SQL for when the rate `paced` lets the next job through."""

RATE_IS_PAID_AHEAD = "greatest(extract(epoch FROM paid_up_to - now()) * 1000000, 0)::bigint"
"""SQL for how many microseconds from now on the starts of a rate have paid for."""

_LOOK = f"""
SELECT id, {RATE_IS_PAID_AHEAD} AS ahead, spacing, burst FROM rates WHERE id = ANY ($1::int[]) AND most IS NOT NULL
"""  # noqa: S608 - made of constants

_FIND = f"""
SELECT DISTINCT limiting.id, limiting.tenant, limiting.kind, limiting.most, limiting.seconds, limiting.burst
  FROM unnest($1::text[], $2::text[]) AS lane (tenant, kind), LATERAL {rates_on("lane")} AS limiting
"""  # noqa: S608 - made of constants

# What was paid is kept, so that setting a rate again gives nobody a second burst, but no start has paid more than the
# new rate asks for. Workers hear of a change at once and, without the announcement, find it within a poll.
_SET = """
WITH changed AS (
    INSERT INTO rates (tenant, kind, most, seconds, burst, spacing, decided) VALUES ($1, $2, $3, $4, $5, $6, true)
        ON CONFLICT (tenant, kind) DO UPDATE
           SET most = excluded.most, seconds = excluded.seconds, burst = excluded.burst, spacing = excluded.spacing,
               decided = true,
               paid_up_to = least(rates.paid_up_to, now() + excluded.spacing * interval '1 microsecond')
    RETURNING id
)
SELECT id, pg_notify('waybill_control', 'look') FROM changed
"""

_REMOVE_OF_TENANT = """
WITH removed AS (
    DELETE FROM rates WHERE tenant = $1 AND kind IS NOT DISTINCT FROM $2 RETURNING id
)
SELECT count(pg_notify('waybill_control', 'look')) FROM removed
"""

_LIFT_OF_KIND = """
WITH lifted AS (
    UPDATE rates SET most = NULL, decided = true WHERE tenant IS NULL AND kind = $1 AND most IS NOT NULL RETURNING id
)
SELECT count(pg_notify('waybill_control', 'look')) FROM lifted
"""

_DEFAULT = """
WITH changed AS (
    INSERT INTO rates (kind, most, seconds, burst, spacing) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (tenant, kind) DO UPDATE
           SET most = excluded.most, seconds = excluded.seconds, burst = excluded.burst, spacing = excluded.spacing,
               paid_up_to = least(rates.paid_up_to, now() + excluded.spacing * interval '1 microsecond')
         WHERE NOT rates.decided AND (rates.most, rates.seconds, rates.burst)
               IS DISTINCT FROM (excluded.most, excluded.seconds, excluded.burst)
    RETURNING id
)
SELECT count(pg_notify('waybill_control', 'look')) FROM changed
"""

_NO_DEFAULT = """
WITH removed AS (
    DELETE FROM rates WHERE tenant IS NULL AND kind = $1 AND NOT decided RETURNING id
)
SELECT count(pg_notify('waybill_control', 'look')) FROM removed
"""

_LIST = """
SELECT id, tenant, kind, most, seconds, burst FROM rates WHERE most IS NOT NULL
 ORDER BY tenant NULLS FIRST, kind NULLS FIRST
"""


@dataclass(frozen=True, slots=True)
class Opening:
    """How many jobs a rate lets through now."""

    room: int
    look_in: float | None
    """Seconds until the next one is let through, if none is now."""


async def look_at_rates(connection: Connection, rates: Sequence[Rate]) -> dict[Rate, Opening]:
    """How much room there seems to be. Use it to leave out closed rates, not to claim. Lifted rates are left out."""
    return _openings(rates, await connection.fetch(_LOOK, [rate.id for rate in rates])) if rates else {}


def _openings(rates: Sequence[Rate], rows: Sequence[asyncpg.Record]) -> dict[Rate, Opening]:
    by_id = {rate.id: rate for rate in rates}
    return {by_id[row["id"]]: opening(row["ahead"], row["spacing"], row["burst"]) for row in rows}


def opening(ahead: int, spacing: int, burst: int) -> Opening:
    """What a rate lets through whose starts have paid for so many microseconds from now on."""
    left = (burst - 1) * spacing - ahead
    return Opening(left // spacing + 1, None) if left >= 0 else Opening(0, -left / 1_000_000)


async def find_rates(connection: Connection, lanes: Sequence[Lane]) -> list[Rate]:
    """The rates that limit these lanes."""
    rows = await connection.fetch(_FIND, [lane.tenant for lane in lanes], [lane.kind for lane in lanes])
    return [Rate(*row) for row in rows]


async def set_rate(connection: Connection, pace: Pace, *, tenant: str | None = None, kind: str | None = None) -> Rate:
    """Limit how many jobs of a tenant, of a kind, or of a kind of a tenant start in some time."""
    if tenant is None and kind is None:
        raise Refused("A rate needs a tenant, a kind, or both.")
    if kind is not None and not is_name(kind):
        raise Refused(f"{kind[:80]!r} cannot be a kind: a name is lower case letters, digits and _, at most 63.")
    if tenant is not None:
        check_tenant(tenant)
    async with connection.transaction():
        row = await connection.fetchrow(_SET, tenant, kind, *_numbers(pace))
        assert row is not None, "an upsert always answers"  # noqa: S101
        detail = {"most": pace.most, "seconds": pace.seconds, "burst": pace.at_once}
        await audit.record(connection, "rate.set", _subject(tenant, kind), tenant=tenant, detail=detail)
    return Rate(row["id"], tenant, kind, pace.most, pace.seconds, pace.at_once)


async def remove_rate(connection: Connection, *, tenant: str | None = None, kind: str | None = None) -> bool:
    """Lift a rate. False if there was none."""
    async with connection.transaction():
        if tenant is not None:
            removed = bool(await connection.fetchval(_REMOVE_OF_TENANT, tenant, kind))
        else:
            removed = bool(await connection.fetchval(_LIFT_OF_KIND, kind))
        if removed:
            await audit.record(connection, "rate.removed", _subject(tenant, kind), tenant=tenant)
    return removed


def _subject(tenant: str | None, kind: str | None) -> str:
    return f"rate:{tenant or '*'}/{kind or '*'}"


async def rate_by_default(connection: Connection, kind: str, pace: Pace | None) -> None:
    """Limit this kind unless an operator ever decided about it. None removes an earlier default."""
    if pace is None:
        await connection.execute(_NO_DEFAULT, kind)
    else:
        await connection.execute(_DEFAULT, kind, *_numbers(pace))


def _numbers(pace: Pace) -> tuple[int, float, int, int]:
    if not 1 <= pace.most <= _MOST:
        raise Refused(f"A rate must let through 1 to {_MOST:,} jobs. To let none through, set a cap of 0.")
    if not 0.001 <= pace.seconds <= _LONGEST:
        raise Refused("The time of a rate must be between a millisecond and 30 days.")
    if not 1 <= pace.at_once <= pace.most:
        raise Refused(f"A burst must be between 1 and {pace.most:,}, the most that may start in all that time.")
    # `burst` jobs at once and one more after each spacing: that is `most` in `seconds` if there are most - burst + 1
    # spacings in them. Rounded up, so that it is never more.
    return pace.most, pace.seconds, pace.at_once, math.ceil(pace.seconds * 1_000_000 / (pace.most - pace.at_once + 1))


async def list_rates(connection: Connection) -> list[Rate]:
    return [Rate(*row) for row in await connection.fetch(_LIST)]
