"""Live streams: who follows which owner's jobs, and what they are told.

A stream is a cursor that moves: whenever its owner's version changes, it asks for what changed since, as a poll would,
and streams that stand at the same place share the answer. The id of an event is the cursor after it, so a browser that
comes back with `Last-Event-ID` goes on where it was.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from waybill.changes import Changes
from waybill.errors import RateLimited
from waybill_api.listings import Answer, Listings

KEEP_ALIVE = 15.0
"""Seconds of silence after which a stream says that it is still there."""
_TOGETHER = 0.15
"""Seconds that changes may gather before they are told, so that a busy owner is told a few times a second."""


class Streams:
    def __init__(self, listings: Listings, changes: Changes, *, most_per_owner: int) -> None:
        self._listings = listings
        self._changes = changes
        self._most = most_per_owner
        self._open: Counter[str] = Counter()
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End every stream; browsers come back to another replica by themselves."""
        self._closing.set()

    @property
    def closing(self) -> bool:
        return self._closing.is_set()

    @contextmanager
    def enter(self, owner: str) -> Iterator[None]:
        """A place for one more stream of this owner, or RateLimited."""
        if self._open[owner] >= self._most:
            raise RateLimited("Too many live pages are open. Please close one.", retry_after=10)
        self._open[owner] += 1
        try:
            yield
        finally:
            self._open[owner] -= 1
            if not self._open[owner]:
                del self._open[owner]

    async def follow(self, owner: str, last_seen: str | None) -> AsyncIterator[Answer | None]:
        """What changes, as it changes; None when there was nothing to tell for a while.

        The first answer comes at once: where things stand, or what has happened since `last_seen`.
        """
        loop = asyncio.get_running_loop()
        seen = self._changes.version(owner)
        cursor = last_seen or (await self._listings.page(owner, limit=1)).listing.since
        told_at = -math.inf
        while not self.closing:
            answer = await self._listings.since(owner, cursor)
            listing = answer.listing
            cursor = listing.next or listing.since
            if listing.jobs or listing.deleted or told_at == -math.inf:
                yield answer
                told_at = loop.time()
            elif loop.time() - told_at >= KEEP_ALIVE:
                yield None
                told_at = loop.time()
            if listing.next is not None:
                continue
            if await self._wait(owner, seen, told_at + KEEP_ALIVE - loop.time()):
                await asyncio.sleep(_TOGETHER)
            seen = self._changes.version(owner)

    async def _wait(self, owner: str, seen: int, timeout: float) -> bool:
        """Whether there may be news; false after that time, or when we close."""
        changing = asyncio.create_task(self._changes.wait(owner, seen, max(0.0, timeout)))
        closing = asyncio.create_task(self._closing.wait())
        try:
            await asyncio.wait((changing, closing), return_when=asyncio.FIRST_COMPLETED)
            return changing.done() and changing.result()
        finally:
            for task in (changing, closing):
                task.cancel()
            await asyncio.wait((changing, closing))
