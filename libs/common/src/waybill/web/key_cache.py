"""API keys, remembered for a moment: a program that polls does not make the database check its key each time.

A key that is revoked is forgotten at once where we are told of it, and within two seconds where we are not.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass

from waybill.changes.subscriptions import BLIND, Changes
from waybill.db import Database
from waybill.errors import Unauthorized
from waybill.security import Principal, keys
from waybill.security.keys import KeyInfo

_LASTS = 30.0
_MOST = 5000


@dataclass(frozen=True, slots=True)
class _Known:
    principal: Principal
    version: int
    until: float


class Keyring:
    def __init__(self, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    async def of_text(self, text: str) -> Principal:
        """Whose key this is; Unauthorized if nobody's."""
        parsed = keys.parse(text)
        if parsed is None:
            raise Unauthorized("This is not an API key of ours.")
        # By a hash: the keys themselves are not kept in memory.
        name = hashlib.sha256(text.encode()).digest()
        topic = f"key:{parsed[0]}"
        if (known := self._remembered(name, topic)) is not None:
            return known
        version = self._changes.version(topic)
        async with self._database.hot() as connection:
            info = await keys.verify(connection, text)
        return self._remember(name, info, version)

    async def of_id(self, key_id: uuid.UUID) -> Principal:
        """For a browser that signed in with this key."""
        name, topic = key_id.bytes, f"key:{key_id}"
        if (known := self._remembered(name, topic)) is not None:
            return known
        version = self._changes.version(topic)
        async with self._database.hot() as connection:
            info = await keys.find(connection, key_id)
        return self._remember(name, info, version)

    async def lasts(self, key_id: uuid.UUID) -> float:
        """Seconds for which the key is known to be good; Unauthorized once it is not."""
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
