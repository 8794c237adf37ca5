"""Hearing that something of somebody's has changed, so that nobody has to ask the database over and over.

One connection per process LISTENs on `waybill_changes`, whose payload is an owner (`session:…`, `tenant:…`), a key
(`key:<id>`) or a session that was ended, and on `waybill_control`, which is said when a breaker moves. Each is a topic
with a version; whoever remembers something remembers the version with it. Where LISTEN cannot work (PgBouncer) or the
connection is down, `listening` is false: what is remembered is then good for two seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Never

import structlog

from waybill.background_tasks import end
from waybill.db.database import Database

CHANNEL = "waybill_changes"
BREAKERS = "breakers"
"""The topic of all circuit breakers."""
BLIND = 2.0
"""Seconds for which what is remembered is good while nobody tells us of changes."""

_CONTROL = "waybill_control"
"""Where breakers and queues say that they were changed."""
_MOST_TOPICS = 20_000

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Subscriptions:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers = itertools.count(1)
        self._versions: dict[str, int] = {}
        self._floor = 0
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self.listening = False

    def start(self) -> None:
        if self._task is None and not self._database.pgbouncer:
            self._task = asyncio.create_task(self._keep_listening(), name="changes")

    async def stop(self) -> None:
        if self._task is not None:
            await end(self._task)
            self._task = None

    def version(self, topic: str) -> int:
        """Grows whenever the topic changes. Read it before the database: what comes later is then a change."""
        return self._versions.get(topic, self._floor)

    def versions(self, topics: Iterable[str]) -> dict[str, int]:
        return {topic: self.version(topic) for topic in topics}

    async def wait(self, seen: Mapping[str, int], timeout: float) -> bool:
        """Wait until a topic has changed since the version `seen` of it; false if none has in all that time.

        Where nobody tells us, two seconds of waiting count as a change.
        """
        limit = timeout if self.listening else min(timeout, BLIND)
        event = asyncio.Event()
        for topic in seen:
            self._waiting[topic].add(event)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    while self.versions(seen) == seen:
                        await event.wait()
                        event.clear()
            return self.versions(seen) != seen or limit < timeout
        finally:
            for topic in seen:
                self._waiting[topic].discard(event)
                if not self._waiting[topic]:
                    del self._waiting[topic]

    def changed(self, topic: str) -> None:
        if len(self._versions) >= _MOST_TOPICS:
            self._forget()
        self._versions[topic] = next(self._numbers)
        for event in self._waiting.get(topic, ()):
            event.set()

    def _forget(self) -> None:
        """Everything may have changed."""
        self._versions.clear()
        self._floor = next(self._numbers)
        for events in self._waiting.values():
            for event in events:
                event.set()

    async def _keep_listening(self) -> None:
        pause = 0.1
        while True:
            try:
                await self._listen()
            except Exception as error:  # noqa: BLE001 - whatever it is, listening again is the answer
                if self.listening:
                    pause = 0.1
                self.listening = False
                self._forget()
                log.warning("not_listening", error=str(error) or type(error).__name__, again_in=round(pause, 1))
            finally:
                self.listening = False
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5.0)

    async def _listen(self) -> Never:
        def ready() -> None:
            self._forget()  # whatever was said while we were not listening
            self.listening = True

        await self._database.listen((CHANNEL, _CONTROL), self._heard, ready=ready)

    def _heard(self, channel: str, payload: str) -> None:
        if channel == CHANNEL:
            self.changed(payload)
        elif payload == "look":
            self.changed(BREAKERS)
