"""A cache of listings: what many open pages ask for is read from the database once.

A listing stays valid until its owner's version changes (see `waybill.changes.subscriptions`), and only for a few
seconds while something runs, because the times and estimates in it grow old.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pydantic_core

from waybill.changes import BLIND, BREAKERS, Subscriptions
from waybill_convert.schemas import listing_json
from waybill_convert.service import Conversions
from waybill_convert.status import Status
from waybill_convert.views import Listing

_LASTS = 30.0
_LASTS_WHILE_ACTIVE = 5.0
_MOST_BYTES = 64 * 1024 * 1024
_EACH_BYTES, _FINDING_BYTES = 2000, 500
"""Memory of one job, as read and as JSON; and of one finding without its words, which are in memory three times."""


class ListingAnswer:
    """A listing, and its JSON. The JSON is made when somebody asks for it: pages use the listing itself."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        found = [finding for job in listing.jobs if job.error is not None for finding in job.error.findings]
        rows = 1 + len(listing.jobs) + len(listing.deleted)
        self.weight = _EACH_BYTES * rows + sum(_FINDING_BYTES + 3 * _words(finding) for finding in found)
        """About how many bytes of memory it takes."""

    @property
    def cursor(self) -> str:
        return self.listing.next or self.listing.since

    @property
    def more(self) -> bool:
        return self.listing.next is not None

    @property
    def changed(self) -> bool:
        return bool(self.listing.jobs or self.listing.deleted)

    @property
    def standing(self) -> object:
        return self.listing.counts, self.listing.on_hold

    @property
    def body(self) -> bytes:
        return self._written[0]

    @property
    def etag(self) -> str:
        return self._written[1]

    @cached_property
    def _written(self) -> tuple[bytes, str]:
        content = listing_json(self.listing)
        body = pydantic_core.to_json(content)
        # The cursor moves with every transaction on the database. It must not change the tag of an equal listing.
        whole = self.listing.deleted or self.listing.next
        same = body if whole else pydantic_core.to_json({**content, "since": ""})
        return body, f'"{hashlib.sha256(same).hexdigest()[:32]}"'


@dataclass(frozen=True, slots=True)
class _Kept:
    answer: ListingAnswer
    version: tuple[int, int]
    until: float


class ListingCache:
    def __init__(self, conversions: Conversions, changes: Subscriptions) -> None:
        self._conversions = conversions
        self._changes = changes
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._bytes = 0
        self._reading: dict[Hashable, asyncio.Future[ListingAnswer]] = {}

    async def page(
        self,
        owner: str,
        *,
        statuses: tuple[Status, ...] = (),
        words: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> ListingAnswer:
        async def read() -> Listing:
            return await self._conversions.listing(owner, statuses=statuses, words=words, cursor=cursor, limit=limit)

        return await self._remembered(owner, (owner, statuses, words, cursor, limit), read)

    async def since(self, owner: str, since: str, *, limit: int = 500) -> ListingAnswer:
        async def read() -> Listing:
            return await self._conversions.changes_since(owner, since, limit=limit)

        return await self._remembered(owner, (owner, "since", since, limit), read)

    # The feed of live streams

    async def start(self, owner: str) -> str:
        return (await self.page(owner, limit=1)).listing.since

    async def after(self, owner: str, cursor: str) -> ListingAnswer:
        return await self.since(owner, cursor)

    async def _remembered(self, owner: str, key: Hashable, read: Callable[[], Awaitable[Listing]]) -> ListingAnswer:
        while True:
            version = (self._changes.version(owner), self._changes.version(BREAKERS))
            kept = self._kept.get(key)
            if kept is not None and kept.version == version and time.monotonic() < kept.until:
                self._kept.move_to_end(key)
                return kept.answer
            reading = self._reading.get((key, version))
            if reading is None:
                return await self._read(key, version, read)
            # Another request reads the same listing: wait for it. If that request is cancelled, read it ourselves.
            try:
                return await asyncio.shield(reading)
            except asyncio.CancelledError:
                if not reading.cancelled():
                    raise

    async def _read(
        self, key: Hashable, version: tuple[int, int], read: Callable[[], Awaitable[Listing]]
    ) -> ListingAnswer:
        reading: asyncio.Future[ListingAnswer] = asyncio.get_running_loop().create_future()
        self._reading[(key, version)] = reading
        try:
            answer = ListingAnswer(await read())
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                reading.cancel()
            else:
                reading.set_exception(error)
                reading.exception()  # marks it as seen: it is raised here, and in the requests that wait with us
            raise
        else:
            reading.set_result(answer)
            self._keep(key, version, answer)
            return answer
        finally:
            del self._reading[(key, version)]

    def _keep(self, key: Hashable, version: tuple[int, int], answer: ListingAnswer) -> None:
        lasts = _LASTS_WHILE_ACTIVE if answer.listing.active_count else _LASTS
        lasts = lasts if self._changes.listening else BLIND
        old = self._kept.pop(key, None)
        if old is not None:
            self._bytes -= old.answer.weight
        self._kept[key] = _Kept(answer, version, time.monotonic() + lasts)
        self._bytes += answer.weight
        while self._bytes > _MOST_BYTES and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= oldest.answer.weight


def _words(finding: Any) -> int:
    return len(str(finding.get("message", ""))) if isinstance(finding, dict) else len(str(finding))
