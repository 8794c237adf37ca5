"""Old events go, always a whole beginning of the chain, and a signed checkpoint stays in their place.

Only what is whole is cut: a change must not disappear with the events that show it. Nothing goes of a tenant under
legal hold, and so nothing behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from waybill.audit.actors import Actor
from waybill.audit.chain import COLUMNS, LOCK, next_place
from waybill.audit.checkpoints import BEGINNING, CUT, ChainPlace, read, write
from waybill.audit.recorder import NewEvent, record_many
from waybill.errors import Conflict
from waybill.retention.holds import let_holds_wait

if TYPE_CHECKING:
    from waybill.audit.signatures import Signer
    from waybill.db import Database
    from waybill.db.database import Connection

JANITOR = Actor("system:janitor")

# Positions and times grow together but for what committed late, so each event is asked for its own age.
_OLDEST = f"""
SELECT {COLUMNS}, position, hash, at < now() - $3::float8 * interval '1 day' AS old,
       EXISTS (SELECT FROM tenants WHERE tenants.name = audit_events.tenant AND tenants.hold_at IS NOT NULL) AS held
  FROM audit_events WHERE position IS NOT NULL AND position > $1 ORDER BY position LIMIT $2
"""  # noqa: S608 - made of constants

_REMOVE = "DELETE FROM audit_events WHERE position <= $1"


async def old_ones(connection: Connection, after: int, days: float, limit: int) -> Sequence[int]:
    """The positions of the events that may go, in order, from the first one after `after`."""
    positions = []
    for row in await connection.fetch(_OLDEST, after, limit, days):
        if not row["old"] or row["held"]:
            break
        positions.append(row["position"])
    return positions


async def cut(database: Database, signer: Signer, days: float, limit: int) -> int:
    """Cut off up to so many events that are old. Returns how many. Conflict if the chain is not whole there."""
    async with database.hot() as connection, connection.transaction():
        await connection.execute(LOCK)
        await let_holds_wait(connection)
        known = await read(connection, CUT)
        if known is not None and not signer.signed(CUT, known):
            raise Conflict("The audit trail is not cut: its last cut is signed with another secret, or was forged.")
        start = known.place if known is not None else BEGINNING
        place = await _end_of_old(connection, start, days, limit)
        if place.position == start.position:
            return 0
        await write(connection, signer, CUT, place)
        await connection.execute(_REMOVE, place.position)
        detail = {"position": place.position, "hash": place.hash.hex(), "events": place.position - start.position}
        await record_many(connection, [NewEvent(JANITOR, "audit.cut", "audit", detail=detail)])
        return place.position - start.position


async def _end_of_old(connection: Connection, start: ChainPlace, days: float, limit: int) -> ChainPlace:
    place = start
    for row in await connection.fetch(_OLDEST, start.position, limit, days):
        if not row["old"] or row["held"]:
            break
        following = next_place(row, place)
        if row["position"] != following.position or row["hash"] != following.hash:
            raise Conflict(
                f"The audit trail is not cut: event {row['position']} does not fit. `waybill audit verify` says more."
            )
        place = following
    return place
