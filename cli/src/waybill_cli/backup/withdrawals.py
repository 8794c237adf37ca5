"""What must not come back with a backup that is older: who was erased since, and which keys were revoked.

A backup lists what was withdrawn up to then. A restore takes the lists of all newer backups beside the one it restores,
and of the database that it replaces, and withdraws the same again. What was withdrawn after the last of these is known
to nobody but people, so the restore says up to when it knows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel

from waybill.errors import Conflict
from waybill.security import keys
from waybill_engine import erasure

if TYPE_CHECKING:
    from waybill.db import Database
    from waybill.db.database import Connection
    from waybill.storage import Storage

_HAS_BOTH = "SELECT to_regclass('erasures') IS NOT NULL AND to_regclass('api_keys') IS NOT NULL"


class KnownErasure(BaseModel):
    id: uuid.UUID
    tenant: str | None
    owner: str | None
    requested_at: datetime


class Withdrawals(BaseModel):
    known_until: datetime
    erasures: list[KnownErasure]
    revoked_keys: list[uuid.UUID]


async def read_withdrawals(connection: Connection) -> Withdrawals | None:
    """What this database knows. None if it is not one of ours, or empty."""
    if not await connection.fetchval(_HAS_BOTH):
        return None
    now = await connection.fetchval("SELECT now()")
    found = [
        KnownErasure(id=one.id, tenant=one.tenant, owner=one.owner, requested_at=one.requested_at)
        for one in await erasure.all_ones(connection)
    ]
    return Withdrawals(known_until=now, erasures=found, revoked_keys=await keys.revoked(connection))


def together(sources: Iterable[Withdrawals]) -> Withdrawals:
    """All that any of them knows."""
    every = list(sources)
    return Withdrawals(
        known_until=max(one.known_until for one in every),
        erasures=list({each.id: each for one in every for each in one.erasures}.values()),
        revoked_keys=sorted({key for one in every for key in one.revoked_keys}),
    )


async def withdraw(connection: Connection, withdrawn: Withdrawals) -> tuple[list[uuid.UUID], int]:
    """Begin the erasures that this database has not heard of, and revoke keys; the erasures, and how many keys."""
    begun = [
        one.id
        for one in withdrawn.erasures
        if await erasure.repeat(connection, one.id, one.tenant, one.owner, one.requested_at)
    ]
    return begun, await keys.revoke_all(connection, withdrawn.revoked_keys)


async def erase_again(
    database: Database, storage: Storage, erasers: Sequence[erasure.Eraser], begun: Iterable[uuid.UUID]
) -> list[uuid.UUID]:
    """Finish the erasures; those that could not be finished, because of a legal hold. The janitor goes on with them."""
    left = []
    for erasure_id in begun:
        try:
            done = await erasure.erase(database, storage, erasers, erasure_id, within=3600.0)
        except Conflict:
            left.append(erasure_id)
        else:
            if done.finished_at is None:
                left.append(erasure_id)
    return left
