"""The chain: each event's hash covers its contents, its position and the hash before it.

Events are inserted without a place in the chain, so that transactions that record something never wait for each other.
Somebody (`waybill.audit.linker` in the API, or the janitor) links those that have committed, in one short transaction
at a time, under a lock. An event that is not linked yet can be changed without a trace by whoever gets around the
trigger; that is seconds while an API runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from waybill.audit.actors import Actor
from waybill.audit.checkpoints import BEGINNING, CUT, HEAD, ChainPlace, read, write
from waybill.audit.recorder import NewEvent, record_many

if TYPE_CHECKING:
    from waybill.audit.signatures import Signer
    from waybill.db import Database
    from waybill.db.database import Connection

log: structlog.stdlib.BoundLogger = structlog.get_logger()

BATCH = 500
LINKER = Actor("system:audit")
DAMAGED = "audit.damaged"
"""What the linker records if the chain does not end where its head says. `verify` reports it for ever."""
RESIGNED = "audit.secret_changed"

COLUMNS = """
id, at, actor, key_id, session_id, address, request_id, action, subject, tenant, outcome, times, detail
"""

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('waybill audit chain', 0))"
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended('waybill audit chain', 0))"

_UNLINKED = f"SELECT {COLUMNS} FROM audit_events WHERE position IS NULL ORDER BY at, id LIMIT $1"  # noqa: S608

_ANY_UNLINKED = "SELECT EXISTS (SELECT FROM audit_events WHERE position IS NULL)"

_COUNT_UNLINKED = "SELECT count(*) FROM audit_events WHERE position IS NULL"

_LAST = "SELECT position, hash FROM audit_events WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1"

# By primary key, whatever the planner believes about a table that grows all the time.
_LINK = """
UPDATE audit_events SET position = linked.position, hash = linked.hash
  FROM unnest($1::uuid[], $2::bigint[], $3::bytea[]) AS linked (id, position, hash)
 WHERE audit_events.id = ANY ($1::uuid[]) AND audit_events.id = linked.id
"""


class EventRow(Protocol):
    """A row with the columns of `COLUMNS`, as the driver returns it."""

    def __getitem__(self, column: str, /) -> Any: ...


def canonical(event: EventRow, place: ChainPlace) -> bytes:
    """An event as it is hashed, where `place` is the one before it: JSON with sorted keys and without spaces.

    It has texts, whole numbers, booleans and nulls only, so there is no second way to write it.
    """
    detail = event["detail"]
    content = {
        "position": place.position + 1,
        "previous": place.hash.hex(),
        "id": str(event["id"]),
        "at": spelled(event["at"]),
        "actor": event["actor"],
        "key_id": _text(event["key_id"]),
        "session_id": _text(event["session_id"]),
        "address": event["address"],
        "request_id": _text(event["request_id"]),
        "action": event["action"],
        "subject": event["subject"],
        "tenant": event["tenant"],
        "outcome": event["outcome"],
        "times": event["times"],
        "detail": json.loads(detail) if isinstance(detail, str) else detail,
    }
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def next_place(event: EventRow, place: ChainPlace) -> ChainPlace:
    """The place of an event that follows `place`."""
    return ChainPlace(place.position + 1, hashlib.sha256(canonical(event, place)).digest())


def spelled(moment: datetime) -> str:
    """A time as it is hashed: UTC, always with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def count_unlinked(connection: Connection) -> int:
    return int(await connection.fetchval(_COUNT_UNLINKED))


async def link(database: Database, signer: Signer, *, batch: int = BATCH) -> int | None:
    """Link events that have committed, up to so many. Returns how many, or None while somebody else does it."""
    async with database.hot() as connection:
        # Nobody is kept from working by a trail that is complete, so this is asked without a lock.
        if not await connection.fetchval(_ANY_UNLINKED):
            return 0
        async with connection.transaction():
            if not await connection.fetchval(_TRY_LOCK):
                return None
            return await link_locked(connection, signer, batch)


async def link_locked(connection: Connection, signer: Signer, batch: int = BATCH) -> int:
    """The same in a transaction that has the chain's lock."""
    end = await _end(connection, signer)
    return await _append(connection, signer, end, await connection.fetch(_UNLINKED, batch))


async def renew(database: Database, signer: Signer) -> None:
    """Sign anew what an earlier version signed with an HMAC, so that a public key is enough to check it."""
    async with database.hot() as connection, connection.transaction():
        await connection.execute(LOCK)
        for name in (HEAD, CUT):
            checkpoint = await read(connection, name)
            if checkpoint is not None and signer.is_former(checkpoint) and signer.signed(name, checkpoint):
                await write(connection, signer, name, checkpoint.place)


async def _append(connection: Connection, signer: Signer, end: ChainPlace, events: Iterable[EventRow]) -> int:
    ids, places = [], []
    for event in events:
        end = next_place(event, end)
        ids.append(event["id"])
        places.append(end)
    if ids:
        positions, hashes = [place.position for place in places], [place.hash for place in places]
        await connection.execute(_LINK, ids, positions, hashes)
        await write(connection, signer, HEAD, end)
    return len(ids)


async def _end(connection: Connection, signer: Signer) -> ChainPlace:
    """Where to go on. If the chain does not end where its signed head says, that is recorded first.

    The head is about to be signed anew, so this is the last moment at which the damage can be seen from it. We go on
    behind whatever is further, so that a hole stays a hole.
    """
    head, last = await read(connection, HEAD), await _last(connection)
    if head is None:
        fits = last == BEGINNING
    elif not signer.knows(head):
        fits = head.place == last
        detail = {"position": head.place.position, "before": head.signed_with, "now": signer.fingerprint}
        await record_many(connection, [NewEvent(LINKER, RESIGNED, detail=detail)])
    else:
        fits = head.place == last and signer.signed(HEAD, head)
    if not fits:
        claimed = head.place if head is not None else BEGINNING
        detail = {"head": claimed.position, "last": last.position, "head_hash": claimed.hash.hex()}
        log.error("audit_trail_damaged", head=claimed.position, last=last.position)
        await record_many(connection, [NewEvent(LINKER, DAMAGED, "audit", detail=detail)])
        return max(claimed, last, key=lambda place: place.position)
    return last


async def _last(connection: Connection) -> ChainPlace:
    """The last event's place; where the chain was cut, if there is none left."""
    row = await connection.fetchrow(_LAST)
    if row is not None:
        return ChainPlace(row["position"], row["hash"])
    cut = await read(connection, CUT)
    return cut.place if cut is not None else BEGINNING


def _text(value: object) -> str | None:
    return None if value is None else str(value)
