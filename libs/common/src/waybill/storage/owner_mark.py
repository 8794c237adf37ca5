"""Whose storage is this? An object in it names the database whose rows name the others.

A janitor that was given another installation's bucket would take everything in it for orphans, and an API whose folder
is not mounted would store documents in the bare mount point. `MarkedStorage` finds the mark missing or wrong, and
neither writes nor removes anything, nor says of anything that it does not exist.

The database remembers that it has marked its storage. So only the very first use marks one, and afterwards a storage
without the mark is the wrong one, until `waybill storage claim` says otherwise.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from waybill.errors import Conflict, IoFailure, NotFound, StorageFailed
from waybill.messages import msg
from waybill.security.secrets import has_secret, shared_secret
from waybill.storage.interface import Listed, Storage, Stored

if TYPE_CHECKING:
    from waybill.db import Database

log: structlog.stdlib.BoundLogger = structlog.get_logger()

KEY = "waybill-owner"

_SECRET, _CLAIMED = "storage owner", "storage claimed"
_HINT = (
    "Is WAYBILL_STORAGE_URL right, and is the folder mounted? If this is the right place for this database,"
    " run: waybill storage claim"
)


async def check_owner(database: Database, storage: Storage, *, claim: bool) -> None:
    """Conflict if the storage belongs to another database. One that belongs to nobody yet is claimed."""
    theirs = await mark_of(storage)
    if theirs is None and not claim:
        return
    ours = await _ours(database)
    if theirs is None:
        await storage.put(KEY, ours)
    elif theirs != ours:
        raise Conflict(
            "This storage belongs to another database, so nothing in it is touched. Is WAYBILL_STORAGE_URL right? "
            f"If the two do belong together now, remove the object {KEY!r} from the storage."
        )
    if claim:
        # Only now: whoever is killed before this has claimed nothing.
        async with database.hot() as connection:
            await shared_secret(connection, _CLAIMED)


async def mark_of(storage: Storage) -> bytes | None:
    try:
        return await storage.get(KEY)
    except NotFound:
        return None


async def _ours(database: Database) -> bytes:
    async with database.hot() as connection:
        secret = await shared_secret(connection, _SECRET)
    # Hashed: what lies in a bucket is read by more people than what lies in the database.
    return hashlib.sha256(secret).hexdigest().encode()


class MarkedStorage:
    """A storage that is used only while it carries the mark of our database; otherwise StorageFailed.

    With `strict`, for folders, the mark is also looked for after each change, because a folder can be unmounted at any
    time. Otherwise a mark that was seen within the last `fresh` seconds is good enough.
    """

    def __init__(self, storage: Storage, database: Database, *, strict: bool, fresh: float = 30.0) -> None:
        self._storage = storage
        self._database = database
        self._strict = strict
        self._fresh = 1.0 if strict else fresh
        self._expected: bytes | None = None
        self._seen = -fresh - 1.0
        self._told = False

    def __repr__(self) -> str:
        return repr(self._storage)

    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, limit: int | None = None) -> Stored:
        await self._must_be_ours()
        stored = await self._storage.put(key, data, limit=limit)
        try:
            await self._must_still_be_ours()
        except StorageFailed:
            # It lies where nobody will look for it.
            with suppress(IoFailure):
                await self._storage.delete(key)
            raise
        return stored

    async def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._storage.stream(key, start, end):
                yield chunk
        except NotFound:
            await self._must_still_be_ours()
            raise

    async def get(self, key: str) -> bytes:
        try:
            return await self._storage.get(key)
        except NotFound:
            await self._must_still_be_ours()
            raise

    async def size(self, key: str) -> int:
        try:
            return await self._storage.size(key)
        except NotFound:
            await self._must_still_be_ours()
            raise

    async def exists(self, key: str) -> bool:
        if await self._storage.exists(key):
            return True
        await self._must_still_be_ours()
        return False

    async def delete(self, key: str) -> None:
        await self.delete_many([key])

    async def delete_many(self, keys: Sequence[str]) -> None:
        await self._must_be_ours()
        await self._storage.delete_many(keys)
        await self._must_still_be_ours()

    async def list(self, prefix: str = "") -> AsyncIterator[Listed]:
        await self._must_be_ours()
        async for one in self._storage.list(prefix):
            yield one

    async def remove_abandoned(self, *, older_than: float | None = None, dry_run: bool = False) -> int:
        await self._must_be_ours()
        return await self._storage.remove_abandoned(older_than=older_than, dry_run=dry_run)

    async def free_space(self) -> int | None:
        return await self._storage.free_space()

    async def check(self) -> None:
        await self._storage.check()
        await self._look()

    async def _must_be_ours(self) -> None:
        if time.monotonic() - self._seen >= self._fresh:
            await self._look()

    async def _must_still_be_ours(self) -> None:
        if self._strict:
            await self._look()
        else:
            await self._must_be_ours()

    async def _look(self) -> None:
        if self._expected is None:
            self._expected = await self._claimed()
        found = await mark_of(self._storage)
        if found == self._expected:
            self._seen, self._told = time.monotonic(), False
            return
        if not self._told:
            self._told = True
            log.error("storage_not_ours", storage=repr(self), mark="missing" if found is None else "other", hint=_HINT)
        raise StorageFailed(msg("storage.not_ours"), detail={"mark": "missing" if found is None else "other"})

    async def _claimed(self) -> bytes:
        """The mark of our database. The first time ever, the storage gets it here."""
        async with self._database.hot() as connection:
            known = await has_secret(connection, _CLAIMED)
        if not known:
            with suppress(Conflict):  # the comparison that follows says so
                await check_owner(self._database, self._storage, claim=True)
        return await _ours(self._database)
