"""During a move, nothing is lost sight of: whoever knows both places finds what is in either."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.janitor import stored_keys
from waybill.config import CommonSettings
from waybill.db import Database
from waybill.errors import NotFound, StorageFailed
from waybill.storage import LocalStorage, Storage, service_storage
from waybill.storage.copier import Copier
from waybill.storage.storage_move import MovingStorage


@pytest.fixture
def old(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "old")


@pytest.fixture
def new(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "new")


async def read(storage: Storage, key: str, start: int = 0, end: int | None = None) -> bytes:
    return b"".join([chunk async for chunk in storage.stream(key, start, end)])


async def test_what_is_in_either_place_is_found(old: LocalStorage, new: LocalStorage) -> None:
    storage = MovingStorage(new, old)
    await old.put("a/old", b"12345")
    await old.put("a/both", b"1")
    await new.put("a/both", b"1")
    await storage.put("a/new", b"123")
    assert await stored_keys(new) == {"a/both", "a/new"}, "what is new goes to the new place"
    for key, content in (("a/old", b"12345"), ("a/both", b"1"), ("a/new", b"123")):
        assert await storage.exists(key)
        assert (await storage.get(key), await storage.size(key)) == (content, len(content))
        assert await read(storage, key) == content
    assert await read(storage, "a/old", 1, 3) == b"23"
    assert sorted([one.key async for one in storage.list("a")]) == ["a/both", "a/new", "a/old"]
    with pytest.raises(NotFound):
        await storage.get("a/none")
    with pytest.raises(NotFound):
        await read(storage, "a/none")
    assert not await storage.exists("a/none")


async def test_what_is_removed_goes_from_both_places(old: LocalStorage, new: LocalStorage) -> None:
    storage = MovingStorage(new, old)
    for place in (old, new):
        await place.put("a", b"1")
    await old.put("b", b"1")
    await storage.delete("a")
    await storage.delete_many(["b", "c"])
    assert await stored_keys(old) == await stored_keys(new) == set()


async def test_services_that_are_switched_one_after_the_other_find_each_others_objects(
    db: Database, database_url: str, old: LocalStorage, new: LocalStorage, tmp_path: Path
) -> None:
    def service(**places: Path) -> Storage:
        return service_storage(CommonSettings.model_validate({"database_url": database_url, **places}), db)

    not_yet = service(storage_url=tmp_path / "old")
    await not_yet.put("first", b"1")
    switched = service(storage_url=tmp_path / "new", storage_old_url=tmp_path / "old")
    with pytest.raises(StorageFailed):
        await switched.put("early", b"1")  # nothing was copied there yet, so it may be any place
    await Copier(db, old, new, "new").run()
    await not_yet.put("late", b"2")
    assert await switched.get("late") == b"2"
    await Copier(db, old, new, "new").run()
    assert await service(storage_url=tmp_path / "new").get("late") == b"2"
