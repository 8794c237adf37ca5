"""How long a tenant's things are kept, where that differs from the settings: all SQL on `retention_ages`.

An age belongs to a retention rule (`waybill.retention.rules`) and counts in days. An age of `LONGEST_DAYS` keeps a
thing for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from waybill import audit
from waybill.errors import Refused
from waybill.retention.holds import check_tenant

if TYPE_CHECKING:
    from datetime import datetime

    from waybill.db.database import Connection

LONGEST_DAYS = 36500.0
"""A century: for ever, as far as we are concerned."""

_SET = """
INSERT INTO retention_ages (tenant, rule, days)
SELECT $1, rule, days FROM unnest($2::text[], $3::real[]) AS given (rule, days)
    ON CONFLICT (tenant, rule) DO UPDATE SET days = excluded.days
"""

_FORGET = "DELETE FROM retention_ages WHERE tenant = $1 AND rule = ANY ($2::text[])"

_OF = "SELECT rule, days FROM retention_ages WHERE tenant = $1 ORDER BY rule"

_SHORTEST = "SELECT rule, min(days) AS days FROM retention_ages GROUP BY rule"


async def set_ages(connection: Connection, tenant: str, days: Mapping[str, float | None]) -> dict[str, float]:
    """Give a tenant ages of its own, by rule; None goes back to the setting, a rule that is not named stays as it is.

    The answer is all that the tenant has now.
    """
    check_tenant(tenant)
    given = {rule: age for rule, age in days.items() if age is not None}
    if not all(0 <= age <= LONGEST_DAYS for age in given.values()):
        raise Refused(f"An age must be between 0 and {LONGEST_DAYS:g} days.")
    async with connection.transaction():
        await connection.execute(_SET, tenant, list(given), list(given.values()))
        await connection.execute(_FORGET, tenant, [rule for rule, age in days.items() if age is None])
        await audit.record(connection, "retention.changed", f"tenant:{tenant}", tenant=tenant, detail=days)
        return await ages_of(connection, tenant)


async def ages_of(connection: Connection, tenant: str) -> dict[str, float]:
    """The ages a tenant has of its own, by rule."""
    return {row["rule"]: row["days"] for row in await connection.fetch(_OF, tenant)}


async def shortest_ages(connection: Connection) -> tuple[datetime, dict[str, float]]:
    """The database's time, and of each rule the shortest age that any tenant has."""
    now: datetime = await connection.fetchval("SELECT now()")
    return now, {row["rule"]: row["days"] for row in await connection.fetch(_SHORTEST)}
