"""Refusals are counted, and written as one event per actor, action and interval.

A thousand refusals a second must neither slow down the process that refuses, nor fill the table. So a refusal costs a
dictionary entry. The entries are few: those that are too many are counted together. A task writes them a few seconds
later, and once more at the end. What was counted and not yet written is lost if the process is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from waybill.audit.actors import Actor, trail
from waybill.audit.recorder import NewEvent, Outcome, record_many

if TYPE_CHECKING:
    from waybill.db import Database

log: structlog.stdlib.BoundLogger = structlog.get_logger()

INTERVAL = 10.0
"""Seconds between the first refusal and the event about all of its kind."""
MOST = 100
"""Different refusals that one interval tells apart. More of them are counted together, by action."""
_LAST_WORDS = 5.0

OTHERS = Actor("others")
"""Everybody who was refused when there were too many to tell apart."""


class _Refusal(NamedTuple):
    actor: Actor
    """Without its request: the same refusal of two requests is one event."""
    action: str
    subject: str | None
    tenant: str | None
    detail: tuple[tuple[str, Any], ...]


@dataclass(slots=True)
class _Tallied:
    times: int = 0
    since: float = field(default_factory=time.monotonic)
    first: Actor | None = None
    """With the request that was refused first."""


class RefusalCounter:
    def __init__(self, database: Database, *, interval: float = INTERVAL, most: int = MOST) -> None:
        self._database = database
        self._interval = interval
        self._most = most
        self._counted: dict[_Refusal, _Tallied] = {}
        self._something = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def count(
        self, actor: Actor, action: str, subject: str | None = None, *, tenant: str | None = None, **detail: Any
    ) -> None:
        """Count one refusal."""
        anonymous = Actor(actor.name, actor.key_id, actor.session_id, actor.address)
        known = _Refusal(anonymous, action, subject, tenant, tuple(sorted(detail.items())))
        if known not in self._counted and len(self._counted) >= self._most:
            known = _Refusal(OTHERS, action, None, None, ())
        counted = self._counted.setdefault(known, _Tallied())
        counted.times += 1
        if counted.first is None and known.actor is not OTHERS:
            counted.first = actor
        self._something.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write what was counted, unless the database cannot be reached."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self.flush()

    async def flush(self) -> None:
        """Write what was counted. If that fails, it stays counted."""
        written, self._counted = self._counted, {}
        self._something.clear()
        if not written:
            return
        now = time.monotonic()
        events = [
            NewEvent(
                counted.first or refusal.actor,
                refusal.action,
                refusal.subject,
                refusal.tenant,
                Outcome.REFUSED,
                min(counted.times, 2**31 - 1),
                {**dict(refusal.detail), "within_seconds": round(now - counted.since) + 1},
            )
            for refusal, counted in written.items()
        ]
        try:
            async with self._database.hot() as connection:
                await record_many(connection, events)
        except BaseException as error:
            self._take_back(written)
            if not isinstance(error, Exception):
                raise
            log.warning("refusals_not_written", kinds=len(written), error=str(error) or type(error).__name__)

    def _take_back(self, written: dict[_Refusal, _Tallied]) -> None:
        for refusal, counted in self._counted.items():
            if refusal in written:
                written[refusal].times += counted.times
            elif len(written) < 2 * self._most:
                written[refusal] = counted
        self._counted = written
        self._something.set()

    async def _run(self) -> None:
        while True:
            await self._something.wait()
            await asyncio.sleep(self._interval)
            await self.flush()


def refuse(action: str, subject: str | None = None, *, tenant: str | None = None, **detail: Any) -> None:
    """Count a refusal of the current actor. Its HTTP status is then not counted once more."""
    current = trail()
    current.noted = True
    if current.refusals is not None:
        current.refusals.count(current.actor, action, subject, tenant=tenant, **detail)
