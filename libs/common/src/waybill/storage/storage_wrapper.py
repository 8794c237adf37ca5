"""Forwards to another storage what a wrapper around it does not change."""

from __future__ import annotations

from collections.abc import AsyncIterator

from waybill.storage.interface import Listed, Storage


class StorageWrapper:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __repr__(self) -> str:
        return repr(self._storage)

    async def size(self, key: str) -> int:
        return await self._storage.size(key)

    async def exists(self, key: str) -> bool:
        return await self._storage.exists(key)

    def list(self, prefix: str = "") -> AsyncIterator[Listed]:
        return self._storage.list(prefix)

    async def remove_abandoned(self, *, older_than: float | None = None, dry_run: bool = False) -> int:
        return await self._storage.remove_abandoned(older_than=older_than, dry_run=dry_run)

    async def free_space(self) -> int | None:
        return await self._storage.free_space()

    async def check(self) -> None:
        await self._storage.check()
