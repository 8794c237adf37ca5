"""Watches the free space of the storage, so that uploads are refused while results can still be written."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from waybill.errors import StorageFull
from waybill.messages import msg
from waybill.storage.interface import Storage

_FRESH = 1.0


class Space:
    """Refuses uploads if the storage has less than `min_free` bytes left. A storage without a limit never does."""

    def __init__(self, storage: Storage, min_free: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._storage = storage
        self._min_free = min_free
        self._clock = clock
        self._asking = asyncio.Lock()
        self._free: int | None = None
        self._asked = -math.inf

    async def check(self, incoming: int = 0) -> None:
        """Raise StorageFull unless `incoming` more bytes leave enough. It asks the storage once a second at most."""
        free = await self.free()
        if free is not None and free - incoming < self._min_free:
            raise StorageFull(
                msg("storage.no_room"),
                detail={"free_mb": free // 2**20, "min_free_mb": self._min_free // 2**20},
            )

    async def free(self) -> int | None:
        async with self._asking:
            if self._clock() - self._asked >= _FRESH:
                self._free = await self._storage.free_space()
                self._asked = self._clock()
            return self._free
