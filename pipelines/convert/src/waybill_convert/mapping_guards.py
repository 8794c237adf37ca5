"""What each change of a tenant's mappings and samples goes through, in its transaction.

`tenant` is whose mapping it is: a tenant's, or SHARED.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog

from waybill import audit
from waybill.errors import NotFound
from waybill.messages import msg
from waybill.retention import let_holds_wait
from waybill.retention.holds import refuse_if_held
from waybill.security.principals import owner_of_tenant
from waybill_convert.mapping_models import SHARED, TenantMapping
from waybill_convert.repository import mappings
from waybill_engine import arrivals

if TYPE_CHECKING:
    from waybill.db.database import Connection

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def begin(connection: Connection, tenant: str) -> datetime | None:
    """When something began to arrive, for `admit`. Conflict while the tenant is being erased."""
    return None if tenant == SHARED else await arrivals.begin(connection, tenant, owner_of_tenant(tenant))


async def admit(connection: Connection, tenant: str, begun_at: datetime | None) -> None:
    """Conflict if the tenant is being erased, or was since then."""
    if tenant != SHARED:
        await arrivals.refuse_if_erased(connection, tenant, owner_of_tenant(tenant), begun_at)


async def let_go(connection: Connection, tenant: str) -> None:
    """Conflict while nothing of the tenant may be removed."""
    await let_holds_wait(connection)
    await refuse_if_held(connection, tenant)


async def known(connection: Connection, tenant: str, name: str) -> TenantMapping:
    """The mapping. NotFound if there is none."""
    found = await mappings.get(connection, tenant, name, lock=False)
    if found is None:
        raise no_mapping()
    return found


async def record(
    connection: Connection, action: str, tenant: str, name: str, detail: dict[str, Any] | None = None
) -> None:
    """Note what was done in the audit trail and in the log."""
    await audit.record(connection, action, f"mapping:{name}", tenant=tenant or None, detail=detail)
    log.info(action.replace(".", "_"), mapping=name, shared=tenant == SHARED)


def no_mapping() -> NotFound:
    return NotFound(msg("convert.mapping.none"))
