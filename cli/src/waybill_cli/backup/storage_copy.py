"""The storage's half of a backup: every object, and a list of them with their hashes.

An object never changes. What an earlier backup beside this one has already, it shares with it as a hard link, so that
each backup is complete and costs only what is new.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from waybill.errors import Conflict, IoFailure, NotFound
from waybill.storage import LocalStorage, Storage
from waybill.storage.interface import Listed
from waybill.storage.keys import checked
from waybill.storage.owner_mark import KEY, mark_of
from waybill.storage.parallel_work import side_by_side
from waybill_cli.backup.backup_folder import OBJECTS
from waybill_cli.backup.manifest import STORAGE, BackedUpObject, objects_of

T = TypeVar("T")

_AT_ONCE = 8


@dataclass(slots=True)
class Kept:
    """What was done with the objects."""

    copied: int = 0
    shared: int = 0
    """In a backup: linked to an earlier one. In a restore: there already, with the same content."""
    bytes: int = 0
    """Of all of them."""
    gone: int = 0
    """Deleted while the backup was made."""

    @property
    def objects(self) -> int:
        return self.copied + self.shared


async def copy_out(storage: Storage, backup: Path, earlier: Path | None) -> Kept:
    """Copy everything in the storage into the backup."""
    known = {one.key: one for one in objects_of(earlier)} if earlier else {}
    target = LocalStorage(backup / STORAGE)
    kept = Kept()
    (backup / STORAGE).mkdir(mode=0o700)
    with os.fdopen(os.open(backup / OBJECTS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as lines:

        async def copy(one: Listed) -> None:
            shared = known.get(one.key)
            if (
                shared
                and (shared.bytes, shared.modified) == (one.bytes, one.modified)
                and await asyncio.to_thread(_link, one, earlier, backup)
            ):
                kept.shared += 1
                done = shared
            else:
                try:
                    stored = await target.put(one.key, storage.stream(one.key))
                except NotFound:
                    kept.gone += 1
                    return
                kept.copied += 1
                done = BackedUpObject(key=one.key, bytes=stored.bytes, sha256=stored.sha256, modified=one.modified)
            kept.bytes += done.bytes
            lines.write(done.model_dump_json() + "\n")

        await _for_each(copy, storage.list())
    return kept


async def refuse_foreign(storage: Storage, mark: str | None, replaced: bytes | None) -> None:
    """Conflict if the storage belongs to another database than the backup's, and than the one that is replaced."""
    await storage.check()
    found = await mark_of(storage)
    if found is None or found.decode(errors="replace") == mark or found == replaced:
        return
    raise Conflict(
        f"The storage {storage!r} belongs to another database, so nothing was restored. Is WAYBILL_STORAGE_URL right? "
        f"If it may be overwritten, empty it first, the object {KEY!r} included."
    )


async def copy_back(backup: Path, storage: Storage) -> Kept:
    """Put everything in the backup into the storage. What is there already is read and compared, and left alone."""
    source = LocalStorage(backup / STORAGE)
    kept = Kept()

    async def copy(one: BackedUpObject) -> None:
        if await _is_there(storage, one):
            kept.shared += 1
        else:
            stored = await storage.put(one.key, source.stream(one.key))
            if stored.sha256 != one.sha256:
                raise IoFailure(f"{one.key} changed while it was restored. Verify the backup, and restore it again.")
            kept.copied += 1
        kept.bytes += one.bytes

    # The mark comes last: until then nobody uses the storage.
    objects = sorted(objects_of(backup), key=lambda one: one.key == KEY)
    await _for_each(copy, _each(one for one in objects if one.key != KEY))
    await _for_each(copy, _each(one for one in objects if one.key == KEY))
    return kept


async def _is_there(storage: Storage, one: BackedUpObject) -> bool:
    digest = hashlib.sha256()
    with suppress(NotFound):
        if await storage.size(one.key) == one.bytes:
            async for piece in storage.stream(one.key):
                digest.update(piece)
            return digest.hexdigest() == one.sha256
    return False


def _link(one: Listed, earlier: Path | None, backup: Path) -> bool:
    if earlier is None:
        return False
    source, target = (folder / STORAGE / checked(one.key) for folder in (earlier, backup))
    try:
        if source.lstat().st_size != one.bytes:
            return False
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.link(source, target, follow_symlinks=False)
    except OSError:  # a file system without links, or an earlier backup that somebody has changed
        return False
    return True


async def _each(items: Iterable[T]) -> AsyncIterator[T]:
    for one in items:
        yield one


async def _for_each(work: Callable[[T], Coroutine[None, None, None]], items: AsyncIterator[T]) -> None:
    """Do the work for all items, several at once."""
    taking = asyncio.Lock()

    async def one_after_the_other() -> None:
        while True:
            async with taking:
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    return
            await work(item)

    await side_by_side(one_after_the_other, _AT_ONCE)
