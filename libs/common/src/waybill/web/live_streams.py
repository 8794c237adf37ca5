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

from waybill.changes.subscriptions import BREAKERS, Changes
from waybill.errors import RateLimited, Unauthorized, is_database_outage
from waybill.security import Principal, Session
from waybill.security.sessions import ended_topic
from waybill.web.key_cache import Keyring
from waybill_convert.listing_cache import Answer, Listings
from waybill_convert.models import Listing

KEEP_ALIVE = 15.0
"""Seconds of silence after which a stream says that it is still there."""
_TOGETHER = 0.15
"""Seconds from one telling to the next at least, so that a busy owner is told a few times a second."""
_CLOSING = "streams closing"
"""Our own topic: nobody else speaks of it."""


class Streams:
    def __init__(self, listings: Listings, changes: Changes, keyring: Keyring, *, most_per_owner: int) -> None:
        self._listings = listings
        self._changes = changes
        self._keyring = keyring
        self._most = most_per_owner
        self._open: Counter[str] = Counter()
        self.closing = False

    def close(self) -> None:
        """End every stream; browsers come back to another replica by themselves."""
        self.closing = True
        self._changes.changed(_CLOSING)

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

    async def follow(
        self, caller: Principal, session: Session | None, last_seen: str | None
    ) -> AsyncIterator[Answer | None]:
        """What changes, as it changes; None when there was nothing to tell for a while.

        The first answer comes at once: where things stand, or what has happened since `last_seen`. It ends with the
        caller's key or session, when we close, and when the database is away: browsers come back by themselves.
        """
        # Nothing is stored of a session: one that may have been ended while we did not hear is taken for ended.
        ending = [] if session is None else [ended_topic(session.id)]
        begun = self._changes.versions(ending)
        topics = [*ending, _CLOSING, caller.owner, BREAKERS]
        if caller.key_id is not None:
            topics.append(f"key:{caller.key_id}")
        told: Listing | None = None
        told_at, cursor = -math.inf, last_seen
        try:
            while True:
                seen = self._changes.versions(topics)
                lasts = await self._keyring.lasts(caller.key_id) if caller.key_id is not None else math.inf
                if self.closing or self._changes.versions(ending) != begun:
                    return
                if cursor is None:
                    cursor = (await self._listings.page(caller.owner, limit=1)).listing.since
                answer = await self._listings.since(caller.owner, cursor)
                listing = answer.listing
                cursor = listing.next or listing.since
                if told is None or listing.jobs or listing.deleted or _standing(listing) != _standing(told):
                    yield answer
                    told, told_at = listing, _now()
                elif _now() - told_at >= KEEP_ALIVE:
                    yield None
                    told_at = _now()
                if listing.next is not None:
                    continue
                if await self._changes.wait(seen, max(0.0, min(told_at + KEEP_ALIVE - _now(), lasts))):
                    # The first change after a quiet time is told at once; what follows it, together.
                    await asyncio.sleep(told_at + _TOGETHER - _now())
        except Unauthorized:
            return
        except Exception as error:
            if not is_database_outage(error):
                raise


def _standing(listing: Listing) -> tuple[object, ...]:
    """What is said of all jobs together: it may change though none of them has."""
    return listing.counts, listing.on_hold


def _now() -> float:
    return asyncio.get_running_loop().time()
