"""What an operator decides about tenants: the weight of their share, and the highest priority of their jobs.

A tenant needs no row: without one its weight is 1, and its jobs cannot have a priority above 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from waybill import audit
from waybill.errors import Forbidden, Refused
from waybill.retention.holds import check_tenant

if TYPE_CHECKING:
    from waybill.db.database import Connection

HEAVIEST = 1000.0

# Workers hear of a change at once and, without the announcement, find it within a poll.
_WEIGH = """
WITH changed AS (
    INSERT INTO tenants (name, weight) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET weight = excluded.weight
    RETURNING name
)
SELECT pg_notify('waybill_control', 'look') FROM changed
"""

_GRANT = """
INSERT INTO tenants (name, top_priority) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET top_priority = excluded.top_priority
"""

_GRANTED = "SELECT name, top_priority FROM tenants WHERE name = ANY ($1::text[])"

_LIST = "SELECT name, weight, top_priority, hold_at FROM tenants ORDER BY name"


@dataclass(frozen=True, slots=True)
class Standing:
    """What an operator decided about a tenant."""

    tenant: str
    weight: float
    top_priority: int
    hold_at: datetime | None = None
    """Since when it is under legal hold; see `waybill.retention`."""


async def weigh(connection: Connection, tenant: str, weight: float) -> None:
    """Weight a tenant's share: weight 2 gets twice as much work done as weight 1, while both have work."""
    check_tenant(tenant)
    if not (math.isfinite(weight) and 1 / HEAVIEST <= weight <= HEAVIEST):
        raise Refused(f"A weight must be a number between {1 / HEAVIEST:g} and {HEAVIEST:g}.")
    async with connection.transaction():
        await connection.execute(_WEIGH, tenant, weight)
        await audit.record(connection, "tenant.weighed", f"tenant:{tenant}", tenant=tenant, detail={"weight": weight})


async def grant_priority(connection: Connection, tenant: str, top: int) -> None:
    """Let a tenant's jobs have priorities up to `top`. 0 takes the grant back; queued jobs keep their priority."""
    check_tenant(tenant)
    if not 0 <= top <= 32767:
        raise Refused("A granted priority must be between 0 and 32767.")
    async with connection.transaction():
        await connection.execute(_GRANT, tenant, top)
        detail = {"top_priority": top}
        await audit.record(connection, "tenant.priority_granted", f"tenant:{tenant}", tenant=tenant, detail=detail)


async def check_granted(connection: Connection, wanted: Mapping[str, int]) -> None:
    """Raise Forbidden for priorities, given per tenant, above what an operator has granted."""
    above = {tenant: priority for tenant, priority in wanted.items() if priority > 0}
    if not above:
        return
    granted = {row["name"]: row["top_priority"] for row in await connection.fetch(_GRANTED, list(above))}
    for tenant, priority in above.items():
        if priority > granted.get(tenant, 0):
            raise Forbidden(
                f"Priority {priority} is above what tenant {tenant} may use ({granted.get(tenant, 0)}). "
                f"An operator can grant it: waybill tenant priority {tenant} {priority}"
            )


async def standings(connection: Connection) -> Sequence[Standing]:
    """The tenants that an operator decided something about."""
    return [Standing(*row) for row in await connection.fetch(_LIST)]
