"""Moving to another storage while the system runs: nothing half, nothing twice, nothing that is not the same."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path

import pytest

from support.janitor import stored_keys
from waybill.db import Database
from waybill.errors import Conflict, IoFailure
from waybill.ids import new_id
from waybill.storage import LocalStorage, Stored, upload_key
from waybill.storage.copier import Copier


class Source(LocalStorage):
    """Somebody uploads while we copy, and deletes."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.late: list[str] = []
        self.read: list[str] = []

    async def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        self.read.append(key)
        if self.late:
            await self.put(self.late.pop(), b"late")
        async for chunk in super().stream(key, start, end):
            yield chunk


class Rotten(LocalStorage):
    """Loses a bit on the way to the disk."""

    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, limit: int | None = None) -> Stored:
        stored = await super().put(key, data, limit=limit)
        await super().put(key, b"rotten")
        return stored


class Full(LocalStorage):
    """Takes so many, and no more: as good as being killed there."""

    room = 4

    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, limit: int | None = None) -> Stored:
        self.room -= 1
        if self.room < 0:
            raise IoFailure("The disk is full. We try again by ourselves.")
        return await super().put(key, data, limit=limit)


@pytest.fixture
async def source(tmp_path: Path) -> Source:
    storage = Source(tmp_path / "here")
    for number in range(10):
        await storage.put(upload_key(new_id()), bytes([number]) * 1000)
    return storage


async def test_what_comes_in_meanwhile_comes_along(db: Database, source: Source, tmp_path: Path) -> None:
    source.late = [upload_key(new_id()) for _ in range(3)]
    target = LocalStorage(tmp_path / "there")
    done = await Copier(db, source, target, "there").run()
    assert (done.objects, done.known, done.failed) == (13, 0, {})
    assert await stored_keys(target) == await stored_keys(source)
    for key in await stored_keys(source):
        assert await target.get(key) == await source.get(key)


async def test_interrupted_it_goes_on_where_it_was(db: Database, source: Source, tmp_path: Path) -> None:
    target = Full(tmp_path / "there")
    done = await Copier(db, source, target, "there").run()
    assert (done.objects, len(done.failed)) == (4, 6)
    source.read.clear()
    done = await Copier(db, source, LocalStorage(tmp_path / "there"), "there").run()
    assert (done.objects, done.known, done.failed) == (6, 4, {})
    assert len(source.read) == 6, "what was copied is not read again"


async def test_what_arrives_changed_is_no_copy(db: Database, source: Source, tmp_path: Path) -> None:
    target = Rotten(tmp_path / "there")
    done = await Copier(db, source, target, "there").run()
    assert (done.objects, len(done.failed)) == (0, 10)
    assert set(done.failed.values()) == {"The copy differs from the original."}
    assert await stored_keys(target) == set()


async def test_what_was_copied_and_is_gone_from_the_target_is_copied_again(
    db: Database, source: Source, tmp_path: Path
) -> None:
    target = LocalStorage(tmp_path / "there")
    await Copier(db, source, target, "there").run()
    gone, short, *_ = keys = sorted(await stored_keys(target))
    await target.delete(gone)
    await target.put(short, b"cut off")
    done = await Copier(db, source, target, "there").run()
    assert (done.objects, done.known, done.lost, done.failed) == (2, 8, 2, {})
    for key in keys:
        assert await target.get(key) == await source.get(key)
    done = await Copier(db, source, LocalStorage(tmp_path / "wiped"), "there").run()
    assert (done.objects, done.known, done.lost) == (10, 0, 10)


async def test_on_request_all_that_is_at_the_target_is_read_back(db: Database, source: Source, tmp_path: Path) -> None:
    target = LocalStorage(tmp_path / "there")
    await Copier(db, source, target, "there").run()
    key = sorted(await stored_keys(target))[0]
    await target.put(key, b"r" * 1000)
    assert (await Copier(db, source, target, "there").run()).lost == 0, "its size is right"
    done = await Copier(db, source, target, "there", verify=True).run()
    assert (done.objects, done.known, done.lost, done.failed) == (1, 9, 1, {})
    assert await target.get(key) == await source.get(key)


async def test_the_target_gets_the_mark_of_the_database_first_and_a_foreign_one_is_refused(
    db: Database, source: Source, tmp_path: Path
) -> None:
    await source.put("waybill-owner", b"ours")
    full = Full(tmp_path / "there")
    full.room = 1
    await Copier(db, source, full, "there").run()
    assert [one.key async for one in full.list()] == ["waybill-owner"]
    foreign = LocalStorage(tmp_path / "foreign")
    await foreign.put("waybill-owner", b"theirs")
    with pytest.raises(Conflict, match="different databases"):
        await Copier(db, source, foreign, "foreign").run()
    assert await foreign.get("waybill-owner") == b"theirs"
    assert await stored_keys(foreign) == set()
