"""Checking the chain: every hash again, from the cut to the head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill.audit.chain import COLUMNS, DAMAGED, RESIGNED, next_place
from waybill.audit.checkpoints import BEGINNING, CUT, HEAD, ChainPlace, Checkpoint, read

if TYPE_CHECKING:
    from waybill.audit.signatures import Verifier
    from waybill.db.database import Connection

_PAGE = f"""
SELECT {COLUMNS}, position, hash FROM audit_events
 WHERE position IS NOT NULL AND position >= $1 ORDER BY position LIMIT $2
"""  # noqa: S608 - made of constants

_BEHIND = "SELECT id, position FROM audit_events WHERE position <= $1 ORDER BY position LIMIT 1"

_UNLINKED = "SELECT count(*) AS events, min(at) AS oldest, now() AS now FROM audit_events WHERE position IS NULL"

PAGE = 2000


@dataclass(frozen=True, slots=True)
class ChainFault:
    """Why the chain is not whole."""

    position: int
    """Of the first event that does not fit, or that is missing."""
    event_id: str | None
    says: str


@dataclass(slots=True)
class Verdict:
    """What a walk over the whole chain found."""

    first: int = 1
    """The position of the oldest event that is kept."""
    head: ChainPlace = BEGINNING
    """The last event that fits: note it elsewhere, and expect it the next time."""
    events: int = 0
    """How many events fit."""
    unlinked: int = 0
    oldest_unlinked: float | None = None
    """Seconds since the oldest event that is not linked yet."""
    fault: ChainFault | None = None
    secret_changes: list[datetime] = field(default_factory=list)
    """When checkpoints began to be signed with another secret."""

    @property
    def whole(self) -> bool:
        return self.fault is None


async def verify(
    connection: Connection,
    verifier: Verifier,
    *,
    expected: ChainPlace | None = None,
    page: int = PAGE,
    walked: Callable[[int], None] = lambda _: None,
) -> Verdict:
    """Walk over the whole chain. `expected` is a place that somebody noted earlier, outside of the database."""
    # One snapshot for all pages: what is linked or cut meanwhile must not look like a fault.
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        cut, head = await read(connection, CUT), await read(connection, HEAD)
        start = cut.place if cut is not None else BEGINNING
        verdict = Verdict(start.position + 1, start)
        row = await connection.fetchrow(_UNLINKED)
        assert row is not None  # noqa: S101 - it has no condition
        verdict.unlinked = row["events"]
        if row["oldest"] is not None:
            verdict.oldest_unlinked = (row["now"] - row["oldest"]).total_seconds()
        walk = _Walk(verifier, verdict, head, expected)
        verdict.fault = walk.check_signature(CUT, cut) or walk.check_signature(HEAD, head)
        if verdict.fault is None and (behind := await connection.fetchrow(_BEHIND, start.position)) is not None:
            verdict.fault = _fault(behind, "was put in where the trail had been cut")
        while verdict.fault is None:
            rows = await connection.fetch(_PAGE, verdict.head.position + 1, page)
            if not rows:
                break
            for row in rows:
                verdict.fault = walk.step(row)
                if verdict.fault is not None:
                    break
            walked(verdict.events)
        verdict.fault = verdict.fault or walk.check_end()
    return verdict


class _Walk:
    def __init__(
        self, verifier: Verifier, verdict: Verdict, head: Checkpoint | None, expected: ChainPlace | None
    ) -> None:
        self._verifier = verifier
        self._verdict = verdict
        self._head = head
        self._expected = expected
        self._marks = {place.position: place for place in (head.place if head else None, expected) if place is not None}

    def check_signature(self, name: str, checkpoint: Checkpoint | None) -> ChainFault | None:
        if checkpoint is None or self._verifier.signed(name, checkpoint):
            return None
        position = checkpoint.place.position
        if not self._verifier.knows(checkpoint):
            says = f"the checkpoint '{name}' at {position} {self._verifier.unknown(checkpoint)}"
            return ChainFault(position, None, says)
        return ChainFault(position, None, f"the checkpoint '{name}' at {position} was forged: its signature is wrong.")

    def step(self, row: Any) -> ChainFault | None:
        """Look at the next event."""
        verdict, before = self._verdict, self._verdict.head
        if row["position"] != before.position + 1:
            gone = _positions(before.position + 1, row["position"] - 1)
            return ChainFault(
                before.position + 1, None, f"{gone}: removed before event {row['position']} ({row['id']})."
            )
        place = next_place(row, before)
        if place.hash != row["hash"]:
            return _fault(row, "was changed, or stands where another event was")
        mark = self._marks.get(place.position)
        if mark is not None and mark.hash != place.hash:
            what = "the signed head" if self._head and mark == self._head.place else "the place that you expect"
            return _fault(row, f"is not the one of {what}: the chain was made anew from here or before")
        if row["action"] == DAMAGED:
            return _fault(row, "says that the end of the chain had been tampered with when it was linked")
        if row["action"] == RESIGNED:
            verdict.secret_changes.append(row["at"])
        verdict.head, verdict.events = place, verdict.events + 1
        return None

    def check_end(self) -> ChainFault | None:
        """Whether the chain ends where its head says, and reaches what is expected."""
        last, head = self._verdict.head, self._head.place if self._head is not None else BEGINNING
        if head.position > last.position:
            gone = _positions(last.position + 1, head.position)
            return ChainFault(last.position + 1, None, f"{gone} at the end.")
        if head.position < last.position:
            return ChainFault(
                head.position + 1, None, f"the signed head ends at {head.position}, and more was put behind it."
            )
        expected = self._expected
        if expected is None or self._verdict.first <= expected.position <= last.position:
            return None
        if expected.position > last.position:
            gone = _positions(last.position + 1, expected.position)
            return ChainFault(last.position + 1, None, f"{gone} at the end, which you expect.")
        return None  # it was cut since, behind a signed checkpoint


def _fault(row: Any, what: str) -> ChainFault:
    return ChainFault(row["position"], str(row["id"]), f"event {row['position']} ({row['id']}) {what}.")


def _positions(first: int, last: int) -> str:
    return f"event {first} is missing" if first == last else f"events {first} to {last} are missing"
