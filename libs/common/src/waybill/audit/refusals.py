"""Refusals are counted, and written as one event per actor, action and interval.

A thousand refusals a second must neither slow down the process that refuses, nor fill the table. So a refusal costs a
dictionary entry. The entries are few: those that are too many are counted together, first by their address, so that
one address does not push everybody else's out of sight. A task writes them a few seconds later, and once more at the
end. What was counted and not yet written is lost if the process is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import structlog

from waybill.audit.actors import Actor, trail
from waybill.audit.recorder import NewEvent, Outcome, record_many
from waybill.background_tasks import end

if TYPE_CHECKING:
    from waybill.db import Database

log: structlog.stdlib.BoundLogger = structlog.get_logger()

INTERVAL = 10.0
"""Seconds between the first refusal and the event about all of its kind."""
MOST = 100
"""Different refusals that one interval tells apart. More of them are counted together, by action."""
MOST_OF_ONE = 10
"""How many of them may come from one address. More of those are counted together, by address and action."""
_LAST_WORDS = 5.0

OTHERS = Actor("others")
"""Everybody who was refused when there were too many to tell apart."""


_Key = tuple[Hashable, ...]


@dataclass(slots=True)
class _Tallied:
    """Refusals that are the same but for their requests."""

    first: NewEvent
    """The first of them, with its request."""
    times: int = 0
    since: float = field(default_factory=time.monotonic)


class RefusalCounter:
    def __init__(self, database: Database, *, interval: float = INTERVAL, most: int = MOST) -> None:
        self._database = database
        self._interval = interval
        self._most = most
        self._tallied: dict[_Key, _Tallied] = {}
        self._by_address: Counter[str | None] = Counter()
        """How many of them each address has."""
        self._something = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def count(
        self, actor: Actor, action: str, subject: str | None = None, *, tenant: str | None = None, **detail: Any
    ) -> None:
        """Count one refusal."""
        # A plain tuple without the request's id: this is what a storm of refusals costs.
        who = (actor.name, actor.key_id, actor.session_id, actor.address)
        key: _Key = (*who, action, subject, tenant, *detail.items())
        tallied = self._tallied.get(key)
        if tallied is None:
            tallied = self._begin(key, NewEvent(actor, action, subject, tenant, Outcome.REFUSED, detail=detail))
        tallied.times += 1
        self._something.set()

    def _begin(self, key: _Key, event: NewEvent) -> _Tallied:
        """An entry for this refusal, or the one that it is counted in together with others."""
        address = event.actor.address
        if address is not None and self._by_address[address] >= MOST_OF_ONE:
            key, event = _together(Actor(OTHERS.name, address=address), event.action)
        if key not in self._tallied and len(self._tallied) >= self._most:
            key, event = _together(OTHERS, event.action)
        if key not in self._tallied:
            self._tallied[key] = _Tallied(event)
            self._by_address[event.actor.address] += 1
        return self._tallied[key]

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write what was counted, unless the database cannot be reached."""
        if self._task is not None:
            await end(self._task)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self.flush()

    async def flush(self) -> None:
        """Write what was counted. If that fails, it stays counted."""
        written, self._tallied = self._tallied, {}
        self._by_address.clear()
        self._something.clear()
        if not written:
            return
        now = time.monotonic()
        events = [
            replace(
                tallied.first,
                times=min(tallied.times, 2**31 - 1),
                detail={**tallied.first.detail, "within_seconds": round(now - tallied.since) + 1},
            )
            for tallied in written.values()
        ]
        try:
            async with self._database.hot() as connection:
                await record_many(connection, events)
        except BaseException as error:
            self._take_back(written)
            if not isinstance(error, Exception):
                raise
            log.warning("refusals_not_written", kinds=len(written), exc_info=error)

    def _take_back(self, written: dict[_Key, _Tallied]) -> None:
        for key, tallied in self._tallied.items():
            if key in written:
                written[key].times += tallied.times
            elif len(written) < 2 * self._most:
                written[key] = tallied
        self._tallied = written
        self._by_address = Counter(tallied.first.actor.address for tallied in written.values())
        self._something.set()

    async def _run(self) -> None:
        while True:
            await self._something.wait()
            await asyncio.sleep(self._interval)
            await self.flush()


def _together(who: Actor, action: str) -> tuple[_Key, NewEvent]:
    return (who.name, who.address, action), NewEvent(who, action, outcome=Outcome.REFUSED)


def refuse(action: str, subject: str | None = None, *, tenant: str | None = None, **detail: Any) -> None:
    """Count a refusal of the current actor. Its HTTP status is then not counted once more."""
    current = trail()
    current.noted = True
    if current.refusals is not None:
        current.refusals.count(current.actor, action, subject, tenant=tenant, **detail)
