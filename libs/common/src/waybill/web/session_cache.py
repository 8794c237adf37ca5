"""Which sessions have not ended, remembered for a short time, so that not every request asks the database.

A session that ends is dropped as soon as we are notified, and within two seconds if notifications do not reach us.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass

from waybill.changes import BLIND, Subscriptions
from waybill.db import Database
from waybill.security import sessions
from waybill.security.sessions import ended_topic

_LASTS = 60.0
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class _KnownSession:
    ended: bool
    version: int
    until: float


class SessionCache:
    def __init__(self, database: Database, changes: Subscriptions) -> None:
        self._database = database
        self._changes = changes
        self._known: OrderedDict[uuid.UUID, _KnownSession] = OrderedDict()

    async def has_ended(self, session_id: uuid.UUID) -> bool:
        version = self._changes.version(ended_topic(session_id))
        known = self._known.get(session_id)
        if known is not None and (known.ended or (known.version == version and time.monotonic() < known.until)):
            return known.ended
        async with self._database.hot() as connection:
            ended = await sessions.has_ended(connection, session_id)
        self._remember(session_id, _KnownSession(ended, version, time.monotonic() + self._lasts()))
        return ended

    def end(self, session_id: uuid.UUID) -> None:
        """Remember that a session has ended, even if the database cannot be told."""
        self._remember(session_id, _KnownSession(True, 0, 0.0))
        self._changes.changed(ended_topic(session_id))

    def _lasts(self) -> float:
        return _LASTS if self._changes.listening else BLIND

    def _remember(self, session_id: uuid.UUID, known: _KnownSession) -> None:
        self._known[session_id] = known
        self._known.move_to_end(session_id)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
