"""How many of an owner's conversions stand where. Up to a thousand of a status are counted whenever somebody looks.

Counting more takes a while, and an owner with a hundred thousand has something change many times a second: large
numbers are counted for a tenth of the time at most. Until then the last ones are told, and whoever follows the owner
is told again once they are counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from waybill_convert.repository import conversions
from waybill_convert.status import Status

if TYPE_CHECKING:
    from waybill.changes.subscriptions import Changes
    from waybill.db.database import Connection

_FEW = 1000
_REST = 9
"""Times as long as counting took that nobody counts again."""
_LONGEST_REST = 5.0
_MOST_OWNERS = 1000


@dataclass(slots=True)
class _Counted:
    counts: dict[Status, int] = field(default_factory=dict)
    again_at: float = 0.0
    telling: asyncio.TimerHandle | None = None
    """Those who were told old numbers will be told again."""


class Counts:
    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._counted: OrderedDict[str, _Counted] = OrderedDict()

    async def look(self, connection: Connection, owner: str) -> tuple[int, dict[Status, int]]:
        """The oldest transaction that is still under way, and counts by status."""
        oldest, counts = await conversions.overview(connection, owner, _FEW)
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
        # Whoever looks while we count makes do with the last numbers.
        counted.again_at = began + _LONGEST_REST
        counts = await conversions.count(connection, owner, statuses)
        took = time.monotonic() - began
        counted.counts = counts
        counted.again_at = began + min(_LONGEST_REST, took * (1 + _REST))
        if counted.telling is not None:  # sooner than it seemed
            counted.telling.cancel()
            self._tell_again(owner, counted)
        return counts

    def _tell_again(self, owner: str, counted: _Counted) -> None:
        def tell() -> None:
            counted.telling = None
            self._changes.changed(owner)

        wait = max(0.0, counted.again_at - time.monotonic())
        counted.telling = asyncio.get_running_loop().call_later(wait, tell)
