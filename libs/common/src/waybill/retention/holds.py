"""Legal holds: while a tenant is under one, nothing of it is removed by anybody.

Whoever removes things for good first takes `let_holds_wait`, so that a hold is exact: once `hold` has returned, nothing
under it is being removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from waybill import audit
from waybill.errors import Conflict, Refused
from waybill.messages import msg
from waybill.pg_text import is_storable

if TYPE_CHECKING:
    from waybill.db.database import Connection

_SHARE = "SELECT pg_advisory_xact_lock_shared(hashtextextended('waybill legal hold', 0))"
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('waybill legal hold', 0))"

# Asked twice, the first time counts; the reason is the latest.
_HOLD = """
INSERT INTO tenants (name, hold_at, hold_reason) VALUES ($1, now(), $2)
    ON CONFLICT (name) DO UPDATE SET hold_at = COALESCE(tenants.hold_at, now()), hold_reason = excluded.hold_reason
"""

_RELEASE = """
UPDATE tenants SET hold_at = NULL, hold_reason = NULL WHERE name = $1 AND hold_at IS NOT NULL RETURNING name
"""

_OF = "SELECT hold_at, hold_reason FROM tenants WHERE name = $1 AND hold_at IS NOT NULL"


@dataclass(frozen=True, slots=True)
class LegalHold:
    since: datetime
    reason: str | None


async def let_holds_wait(connection: Connection) -> None:
    """Let no hold begin until the caller's transaction ends. A statement after this one sees every earlier hold."""
    await connection.execute(_SHARE)


async def hold(connection: Connection, tenant: str, reason: str | None = None) -> None:
    """Put a tenant under legal hold: nothing of it is removed from now on, not even by its own people."""
    check_tenant(tenant)
    async with connection.transaction():
        await connection.execute(_ALONE)
        await connection.execute(_HOLD, tenant, reason)
        await audit.record(connection, "hold.set", f"tenant:{tenant}", tenant=tenant, detail={"reason": reason})


async def release(connection: Connection, tenant: str) -> bool:
    """End a tenant's hold. False if it was not under one."""
    async with connection.transaction():
        lifted = await connection.fetchval(_RELEASE, tenant) is not None
        if lifted:
            await audit.record(connection, "hold.lifted", f"tenant:{tenant}", tenant=tenant)
    return lifted


async def hold_of(connection: Connection, tenant: str) -> LegalHold | None:
    row = await connection.fetchrow(_OF, tenant)
    return LegalHold(*row) if row is not None else None


async def refuse_if_held(connection: Connection, tenant: str) -> None:
    """Conflict while the tenant is under legal hold; after `let_holds_wait`, for as long as the transaction lasts."""
    if await hold_of(connection, tenant) is not None:
        raise Conflict(msg("retention.legal_hold"))


def check_tenant(tenant: str) -> None:
    """Refused unless a tenant can be called so."""
    if not (1 <= len(tenant) <= 200 and is_storable(tenant)):
        raise Refused("A tenant must have 1 to 200 characters, none of them NUL.")
