"""`waybill storage claim`: the configured storage belongs to this database from now on."""

from __future__ import annotations

from waybill.console.database import find_settings, with_database
from waybill.console.terminal import print_line
from waybill.db import Database
from waybill.storage import storage_of
from waybill.storage.owner_mark import check_owner


def claim() -> None:
    """Mark the storage in WAYBILL_STORAGE_URL as this database's.

    Services use no storage without the mark: the folder may not be mounted, or the URL may be wrong. The first service
    ever marks the storage by itself, and `waybill storage migrate` copies the mark. You need this only for a new, empty
    place, or one whose mark was lost. A storage that belongs to another database is refused.
    """
    settings, _ = find_settings()

    async def work(database: Database) -> None:
        await check_owner(database, storage_of(settings), claim=True)

    with_database(work)
    print_line(f"The storage {settings.storage_url} belongs to this database now.")
