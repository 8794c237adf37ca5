"""A document that was being received when its process was killed outlives neither retention nor an erasure."""

from __future__ import annotations

import fcntl
from pathlib import Path

from support.janitor import Janitor
from waybill.db import Database
from waybill.db.database import Connection
from waybill.storage import LocalStorage
from waybill_engine import erasure


def abandon(tmp_path: Path) -> Path:
    """What a killed process leaves: a file that nobody holds the lock of."""
    folder = tmp_path / "storage" / ".waybill-writing"
    folder.mkdir(parents=True, exist_ok=True)
    left = folder / ".waybill-0123456789abcdef.tmp"
    left.write_bytes(b"%PDF-1.7 half a document")
    return left


async def test_every_run_removes_what_killed_writers_left(cleaner: Janitor, tmp_path: Path) -> None:
    left = abandon(tmp_path)
    with left.open("r+b") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        assert await cleaner.would() == {}
    assert await cleaner.would() == {"abandoned": 1}
    assert left.exists()
    assert await cleaner.clean() == {"abandoned": {"files": 1}}
    assert not left.exists()


async def test_an_erasure_takes_it_along(db: Database, hot: Connection, storage: LocalStorage, tmp_path: Path) -> None:
    left = abandon(tmp_path)
    request = await erasure.request(hot, "acme")
    assert (await erasure.erase(db, storage, [], request, within=60)).finished_at is not None
    assert not left.exists()
