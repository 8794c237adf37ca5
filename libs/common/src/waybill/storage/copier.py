"""Copies all objects from one storage to another while both are in use.

An object never changes, so it needs to be copied only once; rows in `storage_copies` record which were. Each copy is
read back and its hash compared. What an earlier run copied is looked for at the target: its size is compared, or on
request its hash, and what is not there any more is copied again. The copier goes through the source again and again,
until a pass finds no new objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from waybill.errors import Conflict, IoFailure, NotFound
from waybill.storage.interface import Listed, Storage
from waybill.storage.owner_mark import KEY, mark_of
from waybill.storage.parallel_work import side_by_side

if TYPE_CHECKING:
    from waybill.db import Database

_PAGE = 500
_AT_ONCE = 8
_LOOKS_AT_ONCE = 16
_MOST_PASSES = 10

_KNOWN = """
SELECT key, sha256 FROM storage_copies
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
    """Copied by an earlier run, and still there."""
    known_bytes: int = 0
    lost: int = 0
    """Copied by an earlier run, but missing or different at the target now; copied again."""
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
    def __init__(
        self, database: Database, source: Storage, target: Storage, place: str, *, verify: bool = False
    ) -> None:
        """With `verify`, everything that is at the target already is read back, too."""
        self._database = database
        self._source = source
        self._target = target
        self._place = place
        self._verify = verify

    async def run(self, progressed: Callable[[Copied], None] = lambda _: None) -> Copied:
        """Copy everything. Conflict if the target belongs to another database than the source."""
        await self._hand_over_mark()
        total = Copied()
        for number in range(_MOST_PASSES):
            before = total.objects
            async for page in self._pages():
                await self._copy_page(page, total, first=number == 0)
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

    async def _hand_over_mark(self) -> None:
        """Mark the target as the source is marked, before anything else: services use no storage without the mark.

        A place that another database's rows refer to is not ours to write into.
        """
        ours, theirs = [await mark_of(storage) for storage in (self._source, self._target)]
        if ours is not None and theirs is None:
            await self._target.put(KEY, ours)
        elif None not in (ours, theirs) and ours != theirs:
            raise Conflict(
                f"The two places belong to different databases, so nothing was copied. Is {self._place} right? "
                f"If it may be overwritten, empty it first, the object {KEY!r} included."
            )

    async def _copy_page(self, page: Sequence[Listed], total: Copied, *, first: bool) -> None:
        async with self._database.hot() as connection:
            rows = await connection.fetch(_KNOWN, self._place, [one.key for one in page], [one.bytes for one in page])
        hashes = {row["key"]: row["sha256"] for row in rows}
        known = set(hashes)
        if first:
            known = await self._still_there([one for one in page if one.key in known], hashes, total)
            total.known += len(known)
            total.known_bytes += sum(one.bytes for one in page if one.key in known)
        waiting = iter([one for one in page if one.key not in known and one.key not in total.failed])

        async def copy() -> None:
            for one in waiting:
                await self._copy(one, total)

        await side_by_side(copy, _AT_ONCE)

    async def _still_there(self, copies: Sequence[Listed], hashes: Mapping[str, str], total: Copied) -> set[str]:
        """Those of the copies that an earlier run made and that are as it left them."""
        there: set[str] = set()
        waiting = iter(copies)

        async def look() -> None:
            for one in waiting:
                if await self._is_copy(one, hashes[one.key]):
                    there.add(one.key)
                else:
                    total.lost += 1

        await side_by_side(look, _AT_ONCE if self._verify else _LOOKS_AT_ONCE)
        return there

    async def _is_copy(self, one: Listed, sha256: str) -> bool:
        if self._verify:
            return await self._hash(one.key) == sha256
        try:
            return await self._target.size(one.key) == one.bytes
        except NotFound:
            return False

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
