"""Live streams: server-sent events about an owner's things, for as long as the browser listens.

A stream is a cursor that moves. Whenever its owner's version changes, it asks its feed for what changed since, as a
poll would. The id of an event is the cursor after it, so a browser that reconnects with `Last-Event-ID` continues where
it was.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Protocol

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from waybill.changes import BREAKERS, Subscriptions
from waybill.errors import RateLimited, Unauthorized
from waybill.failures import is_database_outage
from waybill.messages import msg
from waybill.security import Principal, Session
from waybill.security.sessions import ended_topic
from waybill.telemetry.metrics import RATE_LIMITED
from waybill.web.key_cache import KeyCache
from waybill.web.methods import headers_only

KEEP_ALIVE = 15.0
"""Seconds of silence after which a stream sends a comment, so that proxies keep the connection open."""
_TOGETHER = 0.15
"""The minimum number of seconds between two events, so that a busy owner gets only a few per second."""
_CLOSING = "streams closing"
"""A topic that only this module uses."""
_HEADERS = {"Cache-Control": "no-cache, no-store", "X-Accel-Buffering": "no"}
_MEDIA_TYPE = "text/event-stream"
_COME_BACK = 3000
"""Milliseconds after which a browser whose stream ended reconnects."""


class FeedAnswer(Protocol):
    """One answer of a feed."""

    @property
    def body(self) -> bytes:
        """The event's data: a single line of JSON, or HTML without line ends."""

    @property
    def cursor(self) -> str:
        """Where to continue after this answer."""

    @property
    def more(self) -> bool:
        """Whether there is more right now."""

    @property
    def changed(self) -> bool:
        """Whether the answer names anything that changed since the cursor it was asked with."""

    @property
    def standing(self) -> object:
        """A summary of everything, such as counts. It may change although nothing in the list has changed."""


class Feed(Protocol):
    """A list that a pipeline lets its owners follow."""

    async def start(self, owner: str) -> str:
        """The cursor for everything that changes from now on."""

    async def after(self, owner: str, cursor: str) -> FeedAnswer:
        """What has changed since the cursor."""


class LiveStreams:
    def __init__(
        self, changes: Subscriptions, keys: KeyCache, *, most_per_owner: int, most_per_address: int = 0
    ) -> None:
        """`most_per_address` is for browsers that did not sign in; 0 means any number."""
        self._changes = changes
        self._keys = keys
        self._most = most_per_owner
        self._most_per_address = most_per_address
        self._open: Counter[str] = Counter()
        self.closing = False

    def close(self) -> None:
        """End every stream; browsers reconnect to another replica."""
        self.closing = True
        self._changes.changed(_CLOSING)

    @contextmanager
    def enter(self, caller: Principal, address: str) -> Iterator[None]:
        """Count one more stream; RateLimited if the owner, or the address of somebody unknown, has too many."""
        counted = {caller.owner: self._most}
        if self._most_per_address and not caller.signed_in:  # who drops the cookie is another owner each time
            counted[f"address {address}"] = self._most_per_address
        if any(self._open[subject] >= most for subject, most in counted.items()):
            RATE_LIMITED.labels("streams").inc()
            raise RateLimited(msg("request.too_many_streams"), retry_after=10)
        self._open.update(counted.keys())
        try:
            yield
        finally:
            self._open.subtract(counted.keys())
            for subject in counted:
                if not self._open[subject]:
                    del self._open[subject]

    async def follow(
        self, feed: Feed, caller: Principal, session: Session | None, last_seen: str | None
    ) -> AsyncIterator[FeedAnswer | None]:
        """Changes as they happen; None when there was nothing to send for a while.

        The first answer comes at once: the current state, or what has happened since `last_seen`. The stream ends with
        the caller's key or session, when this process stops, and during a database outage. Browsers then reconnect.
        """
        # Sessions are not stored: one that may have ended while we were not listening counts as ended.
        ending = [] if session is None else [ended_topic(session.id)]
        begun = self._changes.versions(ending)
        topics = [*ending, _CLOSING, caller.owner, BREAKERS]
        if caller.key_id is not None:
            topics.append(f"key:{caller.key_id}")
        told: FeedAnswer | None = None
        told_at, cursor = -math.inf, last_seen
        try:
            while True:
                seen = self._changes.versions(topics)
                lasts = await self._keys.lasts(caller.key_id) if caller.key_id is not None else math.inf
                if self.closing or self._changes.versions(ending) != begun:
                    return
                if cursor is None:
                    cursor = await feed.start(caller.owner)
                answer = await feed.after(caller.owner, cursor)
                cursor = answer.cursor
                if told is None or answer.changed or answer.standing != told.standing:
                    yield answer
                    told, told_at = answer, _now()
                elif _now() - told_at >= KEEP_ALIVE:
                    yield None
                    told_at = _now()
                if answer.more:
                    continue
                if await self._changes.wait(seen, max(0.0, min(told_at + KEEP_ALIVE - _now(), lasts))):
                    # The first change after a quiet time is sent at once; those that follow it are sent together.
                    await asyncio.sleep(told_at + _TOGETHER - _now())
        except Unauthorized:
            return
        except Exception as error:
            if not is_database_outage(error):
                raise

    def response(
        self,
        feed: Feed,
        caller: Principal,
        session: Session | None,
        last_seen: str | None,
        *,
        address: str,
        head: bool = False,
    ) -> StreamingResponse:
        """The HTTP response that streams the feed, or only its headers."""
        if head:
            return headers_only(_HEADERS, _MEDIA_TYPE)

        async def events() -> AsyncIterator[bytes]:
            yield b"retry: %d\n\n" % _COME_BACK
            async for answer in self.follow(feed, caller, session, last_seen):
                if answer is None:
                    yield b": still here\n\n"
                else:
                    yield b"event: change\nid: %s\ndata: %s\n\n" % (answer.cursor.encode(), answer.body)

        return _EventStream(self, caller, address, events())


class _EventStream(StreamingResponse):
    """Counts as one of the owner's and the address's streams for as long as it is open."""

    def __init__(self, streams: LiveStreams, caller: Principal, address: str, body: AsyncIterator[bytes]) -> None:
        super().__init__(body, headers=_HEADERS, media_type=_MEDIA_TYPE)
        self._streams, self._caller, self._address = streams, caller, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.enter(self._caller, self._address):
            await super().__call__(scope, receive, send)


def _now() -> float:
    return asyncio.get_running_loop().time()
