"""A storage that is not mounted, or somebody else's, is not used."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from waybill.db import Database
from waybill.errors import Conflict, NotFound, StorageFailed
from waybill.storage import LocalStorage
from waybill.storage.owner_mark import KEY, MarkedStorage, check_owner


class Disk:
    """A folder as it is mounted on a mount point, which is an ordinary folder without it."""

    def __init__(self, tmp_path: Path) -> None:
        self.point = tmp_path / "storage"
        self._away = tmp_path / "away"

    def unmount(self) -> None:
        self.point.rename(self._away)
        self.point.mkdir()

    def mount(self) -> None:
        shutil.rmtree(self.point)
        self._away.rename(self.point)

    def strays(self) -> list[str]:
        """What was written into the bare mount point."""
        return [str(one.relative_to(self.point)) for one in self.point.rglob("*") if one.is_file()]


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def marked(db: Database, disk: Disk) -> MarkedStorage:
    """As a new process opens it."""
    return MarkedStorage(LocalStorage(disk.point), db, strict=True)


async def test_the_first_use_ever_marks_the_storage_and_everybody_knows_the_mark(db: Database, disk: Disk) -> None:
    first = marked(db, disk)
    await first.check()
    assert len(await LocalStorage(disk.point).get(KEY)) == 64
    await marked(db, disk).put("a", b"1")
    assert await first.get("a") == b"1"
    with pytest.raises(NotFound):
        await first.get("b")
    assert not await first.exists("b")


async def test_while_it_is_not_mounted_nothing_is_written_removed_or_missed(db: Database, disk: Disk) -> None:
    before = marked(db, disk)
    await before.put("a", b"1")
    disk.unmount()
    for storage in (before, marked(db, disk)):
        for refused in (
            storage.check(),
            storage.put("b", b"2"),
            storage.get("a"),
            storage.size("a"),
            storage.exists("a"),
            storage.delete("a"),
            storage.delete_many(["a"]),
            anext(storage.stream("a")),
        ):
            with pytest.raises(StorageFailed, match="not mounted"):
                await refused
    assert disk.strays() == []
    disk.mount()
    assert await before.get("a") == b"1"
    await before.put("b", b"2")


async def test_what_was_being_written_when_it_was_unmounted_is_not_taken_for_stored(db: Database, disk: Disk) -> None:
    storage = marked(db, disk)
    await storage.check()

    async def data() -> AsyncIterator[bytes]:
        disk.unmount()
        yield b"1"

    with pytest.raises(StorageFailed, match="not mounted"):
        await storage.put("a", data())
    assert disk.strays() == []


async def test_a_storage_of_another_database_is_not_used(db: Database, disk: Disk) -> None:
    await LocalStorage(disk.point).put(KEY, b"somebody else")
    with pytest.raises(StorageFailed, match="not the one that belongs to this database"):
        await marked(db, disk).put("a", b"1")
    with pytest.raises(Conflict, match="belongs to another database"):
        await check_owner(db, LocalStorage(disk.point), claim=True)
    assert disk.strays() == [KEY]


async def test_a_new_place_is_used_once_it_is_claimed(db: Database, disk: Disk, tmp_path: Path) -> None:
    await marked(db, disk).check()
    new = LocalStorage(tmp_path / "new")
    with pytest.raises(StorageFailed):
        await MarkedStorage(new, db, strict=True).check()
    await check_owner(db, new, claim=True)
    await MarkedStorage(new, db, strict=True).put("a", b"1")


async def test_for_an_object_store_a_fresh_look_is_enough(db: Database, disk: Disk) -> None:
    storage = MarkedStorage(LocalStorage(disk.point), db, strict=False)
    await storage.put("a", b"1")
    await LocalStorage(disk.point).delete(KEY)
    await storage.put("b", b"2")
    with pytest.raises(StorageFailed):
        await storage.check()
