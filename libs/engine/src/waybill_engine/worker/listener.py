"""Hears announcements, by LISTEN on a connection of its own, outside any transaction.

`announcements` says what they mean. Nothing depends on them: the polls find everything, only later.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from typing import Never

import structlog

from waybill.db import Database
from waybill_engine.announcements import (
    CHANNELS,
    JOBS,
    LANES,
    PROMOTED,
    RELAY,
    SCHEDULED,
    SCHEDULES,
    Announced,
    parse_jobs,
    parse_lane,
)
from waybill_engine.worker.database_health import DatabaseHealth

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Listener:
    def __init__(
        self,
        db: Database,
        health: DatabaseHealth,
        *,
        queues: Collection[str],
        kinds: Collection[str],
        worker_id: Callable[[], uuid.UUID],
        on_lane: Callable[[Announced], None],
        on_look: Callable[[], None],
        on_scheduled: Callable[[float], None],
        on_promoted: Callable[[float | None], None],
        on_schedules: Callable[[float], None],
        on_control: Callable[[], None],
        on_relay: Callable[[], None],
    ) -> None:
        self._db = db
        self._health = health
        self._queues = frozenset(queues)
        self._kinds = frozenset(kinds)
        self._worker_id = worker_id
        self._on_lane = on_lane
        self._on_look = on_look
        self._on_scheduled = on_scheduled
        self._on_promoted = on_promoted
        self._on_schedules = on_schedules
        self._on_control = on_control
        self._on_relay = on_relay

    async def run(self) -> None:
        await self._health.persist(self._listen)

    async def _listen(self) -> Never:
        await self._db.listen(CHANNELS, self._heard, ready=self._hear_what_was_missed)

    def _hear_what_was_missed(self) -> None:
        """Act as if everything had been announced while we were not listening."""
        self._on_look()
        self._on_scheduled(0.0)
        self._on_schedules(0.0)
        self._on_control()

    def _heard(self, channel: str, text: str) -> None:
        try:
            if channel == LANES:
                self._heard_of_lane(parse_lane(text))
            elif channel == JOBS:
                self._heard_of_jobs(text)
            elif channel == SCHEDULED:
                self._on_scheduled(float(text))
            elif channel == PROMOTED:
                self._on_promoted(float(text) if text else None)
            elif channel == SCHEDULES:
                self._on_schedules(float(text))
            elif channel == RELAY:
                self._on_relay()
            elif text == "look":
                self._on_look()
            elif text == str(self._worker_id()):
                self._on_control()
        except (ValueError, TypeError):
            log.warning("strange_notification", channel=channel, payload=text[:100])

    def _heard_of_jobs(self, text: str) -> None:
        if parse_jobs(text) in self._queues:
            self._on_look()

    def _heard_of_lane(self, announced: Announced) -> None:
        if announced.lane.queue in self._queues and announced.lane.kind in self._kinds:
            self._on_lane(announced)
