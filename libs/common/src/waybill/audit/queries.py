"""Reading the trail, newest first, in pages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from waybill.audit.chain import COLUMNS
from waybill.errors import Refused
from waybill.messages import msg

if TYPE_CHECKING:
    from waybill.db.database import Connection

MOST = 500

# One index in the order of time. A rare actor is found by looking at many events, which an operator can wait for.
_PAGE = f"""
SELECT {COLUMNS}, position, hash FROM audit_events
 WHERE (at, id) < ($1, $2)
   AND ($3::text IS NULL OR $3 IN (actor, address, key_id::text, session_id::text, request_id::text))
   AND ($4::text IS NULL OR action = $4 OR starts_with(action, $4 || '.'))
   AND ($5::text IS NULL OR tenant = $5)
   AND ($6::timestamptz IS NULL OR at >= $6)
   AND ($7::timestamptz IS NULL OR at < $7)
   AND ($8::text IS NULL OR subject = $8)
 ORDER BY at DESC, id DESC LIMIT $9
"""  # noqa: S608 - made of constants

_NEWEST = datetime.max  # noqa: DTZ901 - how the driver spells Postgres's infinity
_LAST_ID = uuid.UUID(int=2**128 - 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EventFilter:
    who: str | None = None
    """An actor, an address, or the id of a key, a session or a request."""
    action: str | None = None
    """An action, or what stands before the dot: `key`."""
    tenant: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class AuditEvent:
    id: uuid.UUID
    at: datetime
    actor: str
    key_id: uuid.UUID | None
    session_id: uuid.UUID | None
    address: str | None
    request_id: uuid.UUID | None
    action: str
    subject: str | None
    tenant: str | None
    outcome: str
    times: int
    detail: dict[str, Any]
    position: int | None
    hash: str | None

    def record(self) -> dict[str, Any]:
        """As the API and `--json` write it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class EventPage:
    events: Sequence[AuditEvent]
    next: str | None
    """Where the next page begins; None if there is none."""


async def page(connection: Connection, wanted: EventFilter, *, cursor: str | None = None, limit: int = 50) -> EventPage:
    at, event_id = _parse(cursor) if cursor else (_NEWEST, _LAST_ID)
    rows = await connection.fetch(
        _PAGE,
        at,
        event_id,
        wanted.who,
        wanted.action,
        wanted.tenant,
        wanted.since,
        wanted.until,
        wanted.subject,
        limit + 1,
    )
    events = [_event(row) for row in rows[:limit]]
    return EventPage(events, _cursor(events[-1]) if len(rows) > limit else None)


def _event(row: Any) -> AuditEvent:
    known = dict(row)
    known["detail"] = json.loads(known["detail"]) if isinstance(known["detail"], str) else known["detail"]
    known["hash"] = known["hash"].hex() if known["hash"] is not None else None
    return AuditEvent(**known)


def _cursor(last: AuditEvent) -> str:
    return f"{(last.at - _EPOCH) // timedelta(microseconds=1)}.{last.id.hex}"


def _parse(cursor: str) -> tuple[datetime, uuid.UUID]:
    micros, _, event_id = cursor.partition(".")
    try:
        if not (micros.isascii() and micros.isdigit() and len(event_id) == 32):
            raise ValueError(cursor)
        return _EPOCH + timedelta(microseconds=int(micros)), uuid.UUID(hex=event_id)
    except (ValueError, OverflowError):
        raise Refused(msg("request.cursor")) from None
