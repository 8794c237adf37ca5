"""A short-lived cache of API keys, so that a program which polls does not cost a database query each time.

A revoked key is dropped as soon as we are notified, and within two seconds if notifications do not reach us. Wrong keys
are not remembered, because whoever guesses has a new one each time; `waybill.web.key_lookups` makes them cheap instead.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass

from waybill.changes import BLIND, Subscriptions
from waybill.db import Database
from waybill.errors import Unauthorized
from waybill.messages import msg
from waybill.security import Principal, keys
from waybill.security.keys import KeyInfo
from waybill.web.key_lookups import KeyLookups

_LASTS = 30.0
_MOST = 5000


@dataclass(frozen=True, slots=True)
class _Known:
    principal: Principal
    version: int
    until: float


class KeyCache:
    def __init__(self, database: Database, changes: Subscriptions) -> None:
        self._database = database
        self._changes = changes
        self._lookups = KeyLookups(database)
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    async def of_text(self, text: str) -> Principal:
        """The owner of this key; Unauthorized if it is unknown."""
        parsed = keys.parse(text)
        if parsed is None:
            raise Unauthorized(msg("api_key.unknown"))
        # The cache is keyed by a hash, so that memory holds no keys.
        name = hashlib.sha256(text.encode()).digest()
        topic = f"key:{parsed[0]}"
        if (known := self._remembered(name, topic)) is not None:
            return known
        version = self._changes.version(topic)
        return self._remember(name, await self._lookups.find(text), version)

    async def of_id(self, key_id: uuid.UUID) -> Principal:
        """The owner of the key that a browser signed in with."""
        name, topic = key_id.bytes, f"key:{key_id}"
        if (known := self._remembered(name, topic)) is not None:
            return known
        version = self._changes.version(topic)
        async with self._database.hot() as connection:
            info = await keys.find(connection, key_id)
        return self._remember(name, info, version)

    async def lasts(self, key_id: uuid.UUID) -> float:
        """Seconds for which the key is known to be valid; Unauthorized once it is not."""
        await self.of_id(key_id)
        return self._known[key_id.bytes].until - time.monotonic()

    def _remembered(self, name: bytes, topic: str) -> Principal | None:
        known = self._known.get(name)
        if known is None or known.version != self._changes.version(topic) or time.monotonic() >= known.until:
            return None
        return known.principal

    def _remember(self, name: bytes, info: KeyInfo, version: int) -> Principal:
        lasts = _LASTS if self._changes.listening else BLIND
        if info.expires_in is not None:
            lasts = min(lasts, info.expires_in)
        self._known[name] = _Known(info.principal, version, time.monotonic() + lasts)
        self._known.move_to_end(name)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return info.principal
