"""Below which confidence a tenant's results need a look, where that differs from settings and mappings: all SQL on
`review_thresholds`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill import audit
from waybill.errors import Refused
from waybill.pg_text import is_storable
from waybill.retention.holds import check_tenant
from waybill_convert.doubts import EVERY_MAPPING

if TYPE_CHECKING:
    from waybill.db.database import Connection

MOST = 1000
"""How many mappings of a tenant may have a threshold: every run reads them."""
_LONGEST_NAME = 200

_OF = "SELECT mapping, below FROM review_thresholds WHERE tenant = $1 ORDER BY mapping"

_SET = """
INSERT INTO review_thresholds (tenant, mapping, below) VALUES ($1, $2, $3)
    ON CONFLICT (tenant, mapping) DO UPDATE SET below = excluded.below
"""

_FORGET = "DELETE FROM review_thresholds WHERE tenant = $1 AND mapping = $2"


async def of_tenant(connection: Connection, tenant: str) -> dict[str, int]:
    """A tenant's thresholds by mapping."""
    return {row["mapping"]: row["below"] for row in await connection.fetch(_OF, tenant)}


async def set_threshold(
    connection: Connection, tenant: str, below: int | None, *, mapping: str = EVERY_MAPPING
) -> dict[str, int]:
    """Give a tenant a threshold for a mapping, or for all others; None takes it back. All that the tenant has now."""
    check_tenant(tenant)
    if below is not None and not 0 <= below <= 100:
        raise Refused("A threshold is a confidence between 0 and 100.")
    if len(mapping) > _LONGEST_NAME or not is_storable(mapping):
        raise Refused("A threshold is for a mapping, and no mapping can be called that.")
    async with connection.transaction():
        if below is None:
            await connection.execute(_FORGET, tenant, mapping)
        else:
            await connection.execute(_SET, tenant, mapping, below)
        found = await of_tenant(connection, tenant)
        if len(found) > MOST:
            raise Refused(f"A tenant may have thresholds for {MOST} mappings.")
        detail = {"below": below, "mapping": mapping or None}
        await audit.record(connection, "tenant.review_changed", f"tenant:{tenant}", tenant=tenant, detail=detail)
    return found
