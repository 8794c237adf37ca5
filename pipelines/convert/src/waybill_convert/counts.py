"""The number of an owner's conversions by status. Up to a thousand of each are counted with every request.

Counting more takes a while, and an owner with a hundred thousand conversions sees many changes per second. So we spend
at most a tenth of the time on large counts. Between counts, clients get the previous numbers, and are notified once new
ones are there.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from waybill_convert.repository import listing
from waybill_convert.status import Status

if TYPE_CHECKING:
    from waybill.changes import Subscriptions
    from waybill.db.database import Connection

_FEW = 1000
_REST = 9
"""After a count, we wait this many times as long as it took."""
_LONGEST_REST = 5.0
_MOST_OWNERS = 1000


@dataclass(slots=True)
class _Counted:
    counts: dict[Status, int] = field(default_factory=dict)
    again_at: float = 0.0
    telling: asyncio.TimerHandle | None = None
    """Notifies the clients that got old numbers."""


class Counts:
    def __init__(self, changes: Subscriptions) -> None:
        self._changes = changes
        self._counted: OrderedDict[str, _Counted] = OrderedDict()

    async def look(self, connection: Connection, owner: str) -> tuple[int, dict[Status, int]]:
        """The oldest running transaction, and the counts by status."""
        oldest, counts = await listing.overview(connection, owner, _FEW)
        many = [status for status, number in counts.items() if number >= _FEW]
        return oldest, counts | await self._many(connection, owner, many) if many else counts

    async def _many(self, connection: Connection, owner: str, statuses: list[Status]) -> dict[Status, int]:
        counted = self._counted.setdefault(owner, _Counted())
        self._counted.move_to_end(owner)
        if len(self._counted) > _MOST_OWNERS:
            self._counted.popitem(last=False)
        began = time.monotonic()
        known = counted.counts.keys() >= set(statuses)
        if known and began < counted.again_at:
            if counted.telling is None:
                self._tell_again(owner, counted)
            return {status: counted.counts[status] for status in statuses}
        # Requests that come while we count get the previous numbers.
        counted.again_at = began + _LONGEST_REST
        counts = await listing.count(connection, owner, statuses)
        took = time.monotonic() - began
        counted.counts = counts
        counted.again_at = began + min(_LONGEST_REST, took * (1 + _REST))
        if counted.telling is not None:  # it can be sooner than planned
            counted.telling.cancel()
            self._tell_again(owner, counted)
        return counts

    def _tell_again(self, owner: str, counted: _Counted) -> None:
        def tell() -> None:
            counted.telling = None
            self._changes.changed(owner)

        wait = max(0.0, counted.again_at - time.monotonic())
        counted.telling = asyncio.get_running_loop().call_later(wait, tell)
