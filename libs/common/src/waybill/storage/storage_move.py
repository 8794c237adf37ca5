"""A storage on its way from one place to another: what is not in the new place yet is read from the old one.

While services are switched one after the other, some store in the old place and some in the new one. Those that know
both lose sight of nothing. Everything new goes to the new place, and what is removed goes from both.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Sequence

from waybill.errors import NotFound
from waybill.storage.interface import Listed, Storage, Stored


class MovingStorage:
    def __init__(self, new: Storage, old: Storage) -> None:
        self._new = new
        self._old = old

    def __repr__(self) -> str:
        return f"{self._new!r}, formerly {self._old!r}"

    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, limit: int | None = None) -> Stored:
        return await self._new.put(key, data, limit=limit)

    async def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        begun = False
        try:
            async for chunk in self._new.stream(key, start, end):
                begun = True
                yield chunk
        except NotFound:
            if begun:
                raise
        else:
            return
        async for chunk in self._old.stream(key, start, end):
            yield chunk

    async def get(self, key: str) -> bytes:
        try:
            return await self._new.get(key)
        except NotFound:
            return await self._old.get(key)

    async def size(self, key: str) -> int:
        try:
            return await self._new.size(key)
        except NotFound:
            return await self._old.size(key)

    async def exists(self, key: str) -> bool:
        return await self._new.exists(key) or await self._old.exists(key)

    async def delete(self, key: str) -> None:
        await self.delete_many([key])

    async def delete_many(self, keys: Sequence[str]) -> None:
        # The old place first: otherwise whoever copies could bring it back to the new one.
        await self._old.delete_many(keys)
        await self._new.delete_many(keys)

    async def list(self, prefix: str = "") -> AsyncIterator[Listed]:
        async for one in self._new.list(prefix):
            yield one
        async for one in self._old.list(prefix):
            if not await self._new.exists(one.key):
                yield one

    async def remove_abandoned(self, *, older_than: float | None = None, dry_run: bool = False) -> int:
        places = (self._new, self._old)
        return sum([await place.remove_abandoned(older_than=older_than, dry_run=dry_run) for place in places])

    async def free_space(self) -> int | None:
        return await self._new.free_space()

    async def check(self) -> None:
        await self._new.check()
