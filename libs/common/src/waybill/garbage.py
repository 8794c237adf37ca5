"""Stored objects that no row names any more, until they are gone: all SQL on `garbage`.

Triggers on the tables of the engine and the pipelines write the key of whatever a row stops naming, in the transaction
that stops naming it. So rows go first, and whoever is killed before the object went leaves its key here. A key that
ends in a slash stands for everything below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from waybill.errors import IoFailure

if TYPE_CHECKING:
    from waybill.db import Database
    from waybill.db.database import Connection
    from waybill.storage import Storage

_DOOM = """
INSERT INTO garbage (key, since) SELECT key, now() FROM unnest($1::text[]) AS doomed (key) ON CONFLICT DO NOTHING
"""

_SOME = "SELECT key FROM garbage WHERE key > $1 ORDER BY key LIMIT $2"

_KNOWN = "SELECT key FROM garbage WHERE key = ANY ($1::text[])"

_FORGET = "DELETE FROM garbage WHERE key = ANY ($1::text[])"


@dataclass(slots=True)
class Swept:
    objects: int = 0
    failed: dict[str, IoFailure] = field(default_factory=dict)
    """Keys the storage would not let go of; they stay garbage."""


async def doom(connection: Connection, keys: Sequence[str]) -> None:
    """Hand objects over that no row names, in the caller's transaction."""
    await connection.execute(_DOOM, list(keys))


async def known(connection: Connection, keys: Sequence[str]) -> set[str]:
    """Those of the keys that are garbage already."""
    return {row["key"] for row in await connection.fetch(_KNOWN, list(keys))}


async def some(connection: Connection, after: str = "", *, limit: int = 500) -> list[str]:
    """Garbage in the order of its keys."""
    return [row["key"] for row in await connection.fetch(_SOME, after, limit)]


async def sweep(database: Database, storage: Storage, keys: Sequence[str]) -> Swept:
    """Remove these objects, then forget them. Done twice, the second time finds nothing."""
    swept = Swept()
    single = [key for key in keys if not key.endswith("/")]
    gone: list[str] = []
    try:
        await storage.delete_many(single)
        swept.objects, gone = len(single), single
    except IoFailure:
        # One by one, to learn which; the others need not wait for those.
        gone = [key for key in single if await _removed(storage, key, swept)]
    gone = gone + [key for key in keys if key.endswith("/") and await _removed(storage, key, swept)]
    if gone:
        async with database.hot() as connection:
            await connection.execute(_FORGET, gone)
    return swept


async def _removed(storage: Storage, key: str, swept: Swept) -> bool:
    try:
        if key.endswith("/"):
            # Listed first: deleting while a listing goes on may make it skip some.
            below = [one.key async for one in storage.list(key)]
            await storage.delete_many(below)
            swept.objects += len(below)
        else:
            await storage.delete(key)
            swept.objects += 1
    except IoFailure as error:
        swept.failed[key] = error
        return False
    return True


async def sweep_all(database: Database, storage: Storage) -> Swept:
    """Remove all the garbage there is."""
    swept, after = Swept(), ""
    while True:
        async with database.hot() as connection:
            keys = await some(connection, after)
        if not keys:
            return swept
        after = keys[-1]
        batch = await sweep(database, storage, keys)
        swept.objects += batch.objects
        swept.failed |= batch.failed
