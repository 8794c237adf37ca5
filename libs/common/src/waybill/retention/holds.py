"""How long a tenant's things are kept, and legal holds: what an operator decided, all in the tenant's row.

The view `retained` (migration 0009) puts it together for each job; the janitor acts on it. Whatever removes things for
good first takes `let_holds_wait`, so that a hold is exact: once it has returned, nothing under it is being removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill.errors import Conflict, Refused
from waybill.pg_text import is_storable

if TYPE_CHECKING:
    from waybill.db.database import Connection

LONGEST_DAYS = 36500.0
"""A century: for ever, as far as we are concerned."""

LIMITS = ("pdf_ttl_days", "xml_ttl_days", "xml_on_download", "events_ttl_days", "jobs_ttl_days")

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

_HELD = "SELECT EXISTS (SELECT FROM tenants WHERE name = $1 AND hold_at IS NOT NULL)"

_KEEP = """
INSERT INTO tenants AS known (name, pdf_ttl_days, xml_ttl_days, xml_on_download, events_ttl_days, jobs_ttl_days)
VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (name) DO UPDATE
       SET pdf_ttl_days = excluded.pdf_ttl_days, xml_ttl_days = excluded.xml_ttl_days,
           xml_on_download = excluded.xml_on_download, events_ttl_days = excluded.events_ttl_days,
           jobs_ttl_days = excluded.jobs_ttl_days
"""

_OF = """
SELECT hold_at, hold_reason, pdf_ttl_days, xml_ttl_days, xml_on_download, events_ttl_days, jobs_ttl_days
  FROM tenants WHERE name = $1
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """What was decided about one tenant; None where the janitor's setting holds."""

    hold_at: datetime | None = None
    hold_reason: str | None = None
    pdf_ttl_days: float | None = None
    xml_ttl_days: float | None = None
    xml_on_download: bool | None = None
    events_ttl_days: float | None = None
    jobs_ttl_days: float | None = None


async def let_holds_wait(connection: Connection) -> None:
    """Until the caller's transaction ends. A statement after this one sees every hold that has been said."""
    await connection.execute(_SHARE)


async def hold(connection: Connection, tenant: str, reason: str | None = None) -> None:
    """Nothing of the tenant's is removed from now on, not even by its own people."""
    _check(tenant)
    async with connection.transaction():
        await connection.execute(_ALONE)
        await connection.execute(_HOLD, tenant, reason)


async def release(connection: Connection, tenant: str) -> bool:
    """False if it was not held."""
    return await connection.fetchval(_RELEASE, tenant) is not None


async def refuse_if_held(connection: Connection, tenant: str) -> None:
    """Conflict while the tenant is under legal hold; after `let_holds_wait`, for as long as the transaction lasts."""
    if await connection.fetchval(_HELD, tenant):
        raise Conflict("This cannot be removed now: it is under legal hold.")


async def keep(connection: Connection, tenant: str, limits: Mapping[str, Any]) -> Kept:
    """Give a tenant limits of its own; None goes back to the janitor's setting, what is not named stays."""
    _check(tenant)
    for name, value in limits.items():
        if name not in LIMITS:
            raise ValueError(f"no such limit: {name}")
        if name.endswith("_days") and value is not None and not 0 <= value <= LONGEST_DAYS:
            raise Refused(f"A limit is between 0 and {LONGEST_DAYS:g} days.")
    async with connection.transaction():
        known = await of(connection, tenant)
        await connection.execute(_KEEP, tenant, *(limits.get(name, getattr(known, name)) for name in LIMITS))
        return await of(connection, tenant)


async def of(connection: Connection, tenant: str) -> Kept:
    row = await connection.fetchrow(_OF, tenant)
    return Kept(*row) if row is not None else Kept()


def _check(tenant: str) -> None:
    if not (1 <= len(tenant) <= 200 and is_storable(tenant)):
        raise Refused("A tenant has 1 to 200 characters, none of them NUL.")
