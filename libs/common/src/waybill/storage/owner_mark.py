"""Whose storage is this? An object in it names the database whose rows name the others.

A janitor that was given another installation's bucket, or another database, would take everything in it for orphans.
It finds the wrong name, and touches nothing.
"""

from __future__ import annotations

import hashlib

from waybill.db import Database
from waybill.errors import Conflict, NotFound
from waybill.security.secrets import shared_secret
from waybill.storage.interface import Storage

KEY = "waybill-owner"


async def check_owner(database: Database, storage: Storage, *, claim: bool) -> None:
    """Conflict if the storage belongs to another database. One that belongs to nobody yet is claimed."""
    try:
        theirs = (await storage.get(KEY)).decode(errors="replace")
    except NotFound:
        theirs = None
    if theirs is None and not claim:
        return
    async with database.hot() as connection:
        secret = await shared_secret(connection, "storage owner")
    # Hashed: what lies in a bucket is read by more people than what lies in the database.
    ours = hashlib.sha256(secret).hexdigest()
    if theirs is None:
        await storage.put(KEY, ours.encode())
    elif theirs != ours:
        raise Conflict(
            "This storage belongs to another database, so nothing in it is touched. Is WAYBILL_STORAGE_URL right? "
            f"If the two do belong together now, remove the object {KEY!r} from the storage."
        )
