"""Recording what happened, in the transaction in which it happens. Nobody waits for anybody else here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.audit.actors import Actor, trail
from waybill.db.database import Connection, driver
from waybill.ids import new_id
from waybill.pg_text import storable, storable_json
from waybill.redaction import MASK, is_secret_key, redact_text

LONGEST = 500
"""Characters of a text. Whoever chooses names and reasons must not be able to fill the table with one of them."""
_MOST_MEMBERS = 50

# Positions and hashes come later, from whoever links events (`waybill.audit.chain`).
_INSERT = """
INSERT INTO audit_events (id, at, actor, key_id, session_id, address, request_id, action, subject, tenant, outcome,
                          times, detail)
SELECT id, now(), actor, key_id, session_id, address, request_id, action, subject, tenant, outcome, times,
       detail::jsonb
  FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::text[], $6::uuid[], $7::text[], $8::text[],
              $9::text[], $10::text[], $11::int[], $12::text[])
       AS given (id, actor, key_id, session_id, address, request_id, action, subject, tenant, outcome, times, detail)
"""


class Outcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class NewEvent:
    actor: Actor
    action: str
    """What was done, beginning with what it was done to: `key.created`."""
    subject: str | None = None
    """What exactly it was done to: `key:<id>`, `job:<id>`, `queue:<name>`."""
    tenant: str | None = None
    """Whose thing that is, if it is somebody's."""
    outcome: Outcome = Outcome.DONE
    times: int = 1
    """How often the same happened, where that is counted."""
    detail: Mapping[str, Any] = field(default_factory=dict)


async def record(
    on: Connection | AsyncSession,
    action: str,
    subject: str | None = None,
    *,
    tenant: str | None = None,
    outcome: Outcome = Outcome.DONE,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Record what the current actor does. It is in the trail if the caller's transaction commits, and else it is not.

    `detail` is small and has no secrets and nothing of a document: names, numbers and reasons.
    """
    connection = await driver(on) if isinstance(on, AsyncSession) else on
    event = NewEvent(trail().actor, action, subject, tenant, outcome, detail=detail or {})
    await record_many(connection, [event])


async def record_many(connection: Connection, events: Sequence[NewEvent]) -> None:
    """The same for several events at once, each with its own actor."""
    rows = [
        (
            new_id(),
            _short(each.actor.name),
            each.actor.key_id,
            each.actor.session_id,
            _short(each.actor.address),
            each.actor.request_id,
            each.action,
            _short(each.subject),
            _short(each.tenant),
            each.outcome.value,
            each.times,
            json.dumps(presentable(each.detail)),
        )
        for each in events
    ]
    await connection.execute(_INSERT, *(list(column) for column in zip(*rows, strict=True)))


def presentable(value: Any) -> Any:
    """A detail as it is stored: masked, short, and in a form that has only one canonical spelling."""
    if isinstance(value, Mapping):
        members = list(value.items())[:_MOST_MEMBERS]
        return {_short(str(name)): MASK if is_secret_key(str(name)) else presentable(item) for name, item in members}
    if isinstance(value, list | tuple | set | frozenset):
        return [presentable(item) for item in list(value)[:_MOST_MEMBERS]]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, float):  # two programs may write the same number differently, so it is a text
        return int(value) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return _short(redact_text(str(storable_json(value))))


def _short(text: str | None) -> Any:
    if text is None:
        return None
    text = storable(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
