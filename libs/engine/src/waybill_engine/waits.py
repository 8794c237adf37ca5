"""What the breakers of a job's dependencies did while it waited, as lines of the job's history.

A breaker gates claims and touches no job: writing a row for each of a hundred thousand waiting jobs would make an
outage worse. A breaker's own events are few, so a job's history looks them up, for the times in which the job waited.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill.pg_text import as_object
from waybill_engine.models import State
from waybill_engine.rules import dependencies_of

if TYPE_CHECKING:
    from waybill.db.database import Connection

PREFIX = "breaker_"
"""How a breaker's events begin in a job's history: `breaker_opened`, `breaker_closed`, …"""

MOST_TRANSITIONS = 100
"""So many lines of breakers are in a job's history, the newest; and so many events of each breaker are read."""

LIMITING = frozenset({"opened", "reopened", "tripped", "half_opened"})
"""Events after which a breaker limits what may be claimed."""

_TRANSITIONS = f"""
SELECT newest.name, newest.at, newest.event, newest.detail::text AS detail
  FROM kinds, unnest({dependencies_of("kinds")}) AS needed (name), LATERAL (
           SELECT name, id, at, event, detail FROM breaker_events
            WHERE breaker_events.name = needed.name AND at <= COALESCE($2, now())
            ORDER BY id DESC
            LIMIT $3
       ) AS newest
 WHERE kinds.name = $1
 ORDER BY newest.id
"""  # noqa: S608 - made of constants


@dataclass(frozen=True, slots=True)
class Wait:
    """A time in which a job could have been claimed, had nothing held it back."""

    begin: datetime
    end: datetime | None
    """None if it still waits."""

    def has(self, at: datetime) -> bool:
        return self.begin < at and (self.end is None or at <= self.end)


@dataclass(frozen=True, slots=True)
class Transition:
    """One event of a breaker."""

    dependency: str
    at: datetime
    event: str
    detail: dict[str, Any]

    def limits(self, at: datetime) -> bool:
        """Whether claims are limited after this event, at a later time at which no other event has followed."""
        if self.event == "asked_to_wait":
            until = moment_in(self.detail, "until")
            return until is not None and at < until
        return self.event in LIMITING


def waits(events: Sequence[tuple[datetime, str, dict[str, Any]]], state: State) -> Iterator[Wait]:
    """The waits in a history, which is time, event and detail of each line, of a job that is in this state now."""
    since: datetime | None = None
    for at, event, detail in events:
        if event in ("enqueued", "retried", "released", "crashed", "suspected"):
            since = at
        elif event in ("retry_scheduled", "postponed", "snoozed"):
            since = moment_in(detail, "retry_at") or at
        elif event in ("started", "succeeded", "failed", "dead_lettered", "cancelled"):
            if since is not None and since < at:
                yield Wait(since, at)
            since = None
    if since is not None and state is State.QUEUED:
        yield Wait(since, None)


async def transitions_in(connection: Connection, kind: str, times: Sequence[Wait]) -> list[Transition]:
    """What the breakers of a kind's dependencies did in these waits, in order.

    A wait that began while a breaker was not closed begins with the event that had made it so; the detail says `since`
    when. Of many transitions the newest are told.
    """
    if not times:
        return []
    rows = await connection.fetch(_TRANSITIONS, kind, times[-1].end, MOST_TRANSITIONS)
    of_each: dict[str, list[Transition]] = {}
    for row in rows:
        one = Transition(row["name"], row["at"], row["event"], as_object(json.loads(row["detail"])))
        of_each.setdefault(one.dependency, []).append(one)
    found = [one for events in of_each.values() for wait in times for one in _in(wait, events)]
    return sorted(found, key=lambda one: one.at)[-MOST_TRANSITIONS:]


def _in(wait: Wait, events: Sequence[Transition]) -> Iterator[Transition]:
    """What one breaker did in a wait."""
    before = [one for one in events if one.at <= wait.begin]
    if before and before[-1].limits(wait.begin):
        last = before[-1]
        yield replace(last, at=wait.begin, detail={**last.detail, "since": last.at.isoformat()})
    yield from (one for one in events if wait.has(one.at))


def moment_in(detail: dict[str, Any], name: str) -> datetime | None:
    """A time in the detail of an event. None if there is none, or none that can be read."""
    text = detail.get(name)
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None else None
