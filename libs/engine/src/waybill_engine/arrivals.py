"""What arrives for somebody who is being erased: it is refused, and so is what was on its way when that began.

An upload takes as long as its sender does, and an erasure may begin and end meanwhile. Whoever accepts something asks
`begin` when it starts to arrive, and `refuse_if_erased` in the transaction that makes a job of it. That transaction and
the request for the erasure exclude each other: either the erasure finds the job, or the job is not made.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from waybill.errors import Conflict
from waybill.messages import msg

if TYPE_CHECKING:
    from waybill.db.database import Connection

_SHARE = """
SELECT pg_advisory_xact_lock_shared(hashtextextended('waybill erasure of ' || subject, 0))
  FROM unnest($1::text[]) AS subjects (subject)
"""

_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('waybill erasure of ' || $1, 0))"

# The end of the erasure counts, not its beginning: whoever began to send in between had not heard of it yet.
_ERASED = """
SELECT now() AS now,
       EXISTS (SELECT FROM erasures
                WHERE (tenant = $1 OR owner = $2) AND (finished_at IS NULL OR finished_at >= $3)) AS erased
"""


async def begin(connection: Connection, tenant: str, owner: str) -> datetime:
    """When something began to arrive, for `refuse_if_erased`. Conflict while its tenant or owner is being erased."""
    found = await connection.fetchrow(_ERASED, tenant, owner, None)
    assert found is not None  # noqa: S101 - it always answers
    if found["erased"]:
        raise Conflict(msg("retention.being_erased"))
    begun_at: datetime = found["now"]
    return begun_at


async def refuse_if_erased(connection: Connection, tenant: str, owner: str, begun_at: datetime | None) -> None:
    """Conflict if its tenant or owner is being erased, or was since it began to arrive; None means that is just now.

    It stays true until the caller's transaction ends: an erasure that is requested meanwhile begins after it.
    """
    if await is_erased(connection, tenant, owner, begun_at):
        raise Conflict(msg("retention.being_erased"))


async def is_erased(connection: Connection, tenant: str, owner: str, begun_at: datetime | None) -> bool:
    await connection.execute(_SHARE, [_of_tenant(tenant), _of_owner(owner)])
    found = await connection.fetchrow(_ERASED, tenant, owner, begun_at)
    return bool(found is not None and found["erased"])


async def await_arrivals(connection: Connection, tenant: str, owner: str | None) -> None:
    """Wait for what is being made a job of just now, and let nothing more in until the caller's transaction ends."""
    await connection.execute(_ALONE, _of_tenant(tenant) if owner is None else _of_owner(owner))


def _of_tenant(tenant: str) -> str:
    return f"tenant {tenant}"


def _of_owner(owner: str) -> str:
    return f"owner {owner}"
