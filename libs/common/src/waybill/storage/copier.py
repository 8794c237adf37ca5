"""Copies all objects from one storage to another while both are in use.

An object never changes, so it needs to be copied only once; rows in `storage_copies` record which were. Each copy is
read back and its hash compared. The copier goes through the source again and again, until a pass finds no new objects.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from waybill.errors import IoFailure, NotFound
from waybill.storage.interface import Listed, Storage

if TYPE_CHECKING:
    from waybill.db import Database

_PAGE = 500
_AT_ONCE = 8
_MOST_PASSES = 10

_KNOWN = """
SELECT key FROM storage_copies
  JOIN unnest($2::text[], $3::bigint[]) AS listed (name, size) ON key = name AND bytes = size
 WHERE place = $1
"""

_NOTE = """
INSERT INTO storage_copies (place, key, bytes, sha256, copied_at) VALUES ($1, $2, $3, $4, now())
    ON CONFLICT (place, key) DO UPDATE
       SET bytes = excluded.bytes, sha256 = excluded.sha256, copied_at = excluded.copied_at
"""


@dataclass(slots=True)
class Copied:
    objects: int = 0
    bytes: int = 0
    known: int = 0
    """Copied by an earlier run."""
    known_bytes: int = 0
    gone: int = 0
    """Deleted at the source before they were copied."""
    failed: dict[str, str] = field(default_factory=dict)


async def counted(storage: Storage) -> tuple[int, int]:
    """How many objects and bytes there are."""
    objects = size = 0
    async for one in storage.list():
        objects, size = objects + 1, size + one.bytes
    return objects, size


class Copier:
    def __init__(self, database: Database, source: Storage, target: Storage, place: str) -> None:
        self._database = database
        self._source = source
        self._target = target
        self._place = place

    async def run(self, progressed: Callable[[Copied], None] = lambda _: None) -> Copied:
        total = Copied()
        for number in range(_MOST_PASSES):
            before = total.objects
            async for page in self._pages():
                await self._copy_page(page, total, count_known=number == 0)
                progressed(total)
            if total.objects == before:
                break
        return total

    async def _pages(self) -> AsyncIterator[list[Listed]]:
        page: list[Listed] = []
        async for one in self._source.list():
            page.append(one)
            if len(page) == _PAGE:
                yield page
                page = []
        if page:
            yield page

    async def _copy_page(self, page: Sequence[Listed], total: Copied, *, count_known: bool) -> None:
        async with self._database.hot() as connection:
            rows = await connection.fetch(_KNOWN, self._place, [one.key for one in page], [one.bytes for one in page])
        known = {row["key"] for row in rows}
        if count_known:
            total.known += len(known)
            total.known_bytes += sum(one.bytes for one in page if one.key in known)
        waiting = iter([one for one in page if one.key not in known and one.key not in total.failed])

        async def copy() -> None:
            for one in waiting:
                await self._copy(one, total)

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(copy())

    async def _copy(self, one: Listed, total: Copied) -> None:
        try:
            stored = await self._target.put(one.key, self._source.stream(one.key))
        except NotFound:
            total.gone += 1
            return
        except IoFailure as error:
            total.failed[one.key] = error.message
            return
        if await self._hash(one.key) != stored.sha256:
            await self._target.delete(one.key)
            total.failed[one.key] = "The copy differs from the original."
            return
        async with self._database.hot() as connection:
            await connection.execute(_NOTE, self._place, one.key, stored.bytes, stored.sha256)
        total.objects += 1
        total.bytes += stored.bytes

    async def _hash(self, key: str) -> str:
        digest = hashlib.sha256()
        try:
            async for chunk in self._target.stream(key):
                digest.update(chunk)
        except (NotFound, IoFailure):
            return ""
        return digest.hexdigest()
