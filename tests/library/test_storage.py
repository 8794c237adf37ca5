"""What is stored can be fetched as it was, whole or not at all, and never from outside the storage's folder."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from waybill.errors import NotFound, UnsafePath
from waybill.files import AtomicFile
from waybill.storage import LocalStorage, Storage

DATA = bytes(range(256)) * 4096


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return LocalStorage(tmp_path / "storage")


def files(tmp_path: Path) -> list[str]:
    root = tmp_path / "storage"
    return sorted(str(each.relative_to(root)) for each in root.rglob("*") if each.is_file())


async def pieces(data: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def test_an_object_comes_back_as_it_was(storage: Storage) -> None:
    for key, data in (("a/b/whole", DATA), ("a/empty", b"")):
        for given in (data, pieces(data)):
            stored = await storage.put(key, given)
            assert (stored.key, stored.bytes) == (key, len(data))
            assert stored.sha256 == hashlib.sha256(data).hexdigest()
            assert await storage.get(key) == data
            assert b"".join([chunk async for chunk in storage.stream(key)]) == data
            assert await storage.exists(key)


async def test_what_is_not_there_is_not_found(storage: Storage) -> None:
    await storage.put("file", b"x")
    for key in ("missing", "missing/deeper", "file/below"):
        assert not await storage.exists(key)
        await storage.delete(key)
        with pytest.raises(NotFound):
            await storage.get(key)
        with pytest.raises(NotFound):
            await anext(storage.stream(key))


async def test_deleted_is_gone_and_may_be_deleted_again(storage: Storage) -> None:
    await storage.put("a/b", b"x")
    await storage.delete("a/b")
    await storage.delete("a/b")
    assert not await storage.exists("a/b")


async def test_a_key_cannot_lead_outside(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    await storage.put("inside", b"x")
    (tmp_path / "storage" / "link").symlink_to(tmp_path / "outside")
    for key in ("../outside/secret", "link/secret", "/etc/passwd", "a\0b", ""):
        for attempt in (storage.get(key), storage.put(key, b"x"), storage.delete(key), storage.exists(key)):
            with pytest.raises(UnsafePath):
                await attempt
    assert (tmp_path / "outside" / "secret").read_bytes() == b"secret"


async def test_an_upload_that_breaks_off_stores_nothing(storage: Storage, tmp_path: Path) -> None:
    await storage.put("k", b"old")

    async def broken() -> AsyncIterator[bytes]:
        yield DATA
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await storage.put("k", broken())
    assert await storage.get("k") == b"old"
    assert files(tmp_path) == ["k"]


async def test_a_cancelled_upload_stores_nothing(storage: Storage, tmp_path: Path) -> None:
    waiting = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield DATA
        waiting.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(storage.put("k", endless()))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert files(tmp_path) == []


async def test_cancelled_in_the_middle_of_a_write_it_waits_for_the_thread(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing the file under a running write would let it write into whatever is opened next."""
    writing, go_on, aborted = threading.Event(), threading.Event(), threading.Event()
    write, abort = AtomicFile._write_all, AtomicFile.abort
    written: list[int] = []

    def slow_write(self: AtomicFile, chunk: bytes) -> None:
        writing.set()
        assert go_on.wait(30)
        write(self, chunk)
        written.append(len(chunk))

    def seen_abort(self: AtomicFile) -> None:
        abort(self)
        aborted.set()

    monkeypatch.setattr(AtomicFile, "_write_all", slow_write)
    monkeypatch.setattr(AtomicFile, "abort", seen_abort)
    task = asyncio.create_task(storage.put("k", DATA))
    await asyncio.to_thread(writing.wait, 30)
    task.cancel()
    assert not await asyncio.to_thread(aborted.wait, 0.2)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert written == [len(DATA)]
    assert files(tmp_path) == []


async def test_many_writers_of_one_key_leave_one_of_their_objects(storage: Storage, tmp_path: Path) -> None:
    contents = [bytes([number]) * 200_000 for number in range(16)]
    await asyncio.gather(*(storage.put("a/b/k", pieces(content)) for content in contents))
    assert await storage.get("a/b/k") in contents
    assert files(tmp_path) == ["a/b/k"]


async def test_a_reader_keeps_the_object_it_opened(storage: Storage) -> None:
    await storage.put("k", DATA)
    reading = storage.stream("k")
    read = [await anext(reading)]
    await storage.put("k", b"new")
    await storage.delete("k")
    read += [chunk async for chunk in reading]
    assert b"".join(read) == DATA
