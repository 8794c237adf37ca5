"""What a folder promises beside what every storage does: no way out of it, nothing half, nothing left behind."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.patience import eventually
from waybill.errors import Code, IoFailure, StorageFull, UnsafePath
from waybill.failures import classify
from waybill.files import AtomicFile
from waybill.storage import LocalStorage, Space
from waybill.storage.abandoned_files import WRITING

DATA = bytes(range(256)) * 4096


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "storage"


@pytest.fixture
def storage(root: Path) -> LocalStorage:
    return LocalStorage(root)


def everything(root: Path) -> list[str]:
    """All there is, except for the folder in which files are written, which stays."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.name != WRITING)


async def test_a_key_cannot_lead_outside(storage: LocalStorage, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    await storage.put("inside", b"x")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "file").symlink_to(tmp_path / "outside" / "secret")
    for attempt in (
        storage.get("link/secret"),
        storage.put("link/secret", b"x"),
        storage.delete("link/secret"),
        storage.exists("link/secret"),
        storage.get("file"),
        anext(storage.stream("file")),
        anext(storage.list("link")),
    ):
        with pytest.raises(UnsafePath):
            await attempt
    assert not await storage.exists("file")
    assert [each.key async for each in storage.list()] == ["inside"]
    assert (tmp_path / "outside" / "secret").read_bytes() == b"secret"


async def test_cancelled_in_the_middle_of_a_write_it_waits_for_the_thread(
    storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
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
    assert everything(root) == []


async def test_however_often_it_is_cancelled_no_temporary_file_stays(
    storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a program ends: every task is cancelled, those that clean up too."""
    writing, go_on = threading.Event(), threading.Event()
    write, create = AtomicFile._write_all, LocalStorage._create
    files: list[AtomicFile] = []  # held: nothing is tidied up by being forgotten

    def slow_write(self: AtomicFile, chunk: bytes) -> None:
        writing.set()
        assert go_on.wait(30)
        write(self, chunk)

    def seen_create(self: LocalStorage, key: str) -> AtomicFile:
        files.append(create(self, key))
        return files[-1]

    monkeypatch.setattr(AtomicFile, "_write_all", slow_write)
    monkeypatch.setattr(LocalStorage, "_create", seen_create)
    task = asyncio.create_task(storage.put("k", DATA))
    await asyncio.to_thread(writing.wait, 30)
    for _ in range(4):
        for one in asyncio.all_tasks() - {asyncio.current_task()}:
            one.cancel()
        await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    async def tidy() -> bool:
        return everything(root) == []

    await eventually(tidy)


async def test_a_reader_keeps_the_object_it_opened(storage: LocalStorage) -> None:
    await storage.put("k", DATA * 3)
    reading = storage.stream("k")
    read = [await anext(reading)]
    await storage.put("k", b"new")
    await storage.delete("k")
    read += [chunk async for chunk in reading]
    assert b"".join(read) == DATA * 3


async def test_folders_go_with_their_last_object(storage: LocalStorage, root: Path) -> None:
    for key in ("a/b/c/1", "a/b/c/2", "a/d"):
        await storage.put(key, b"x")
    await storage.delete("a/b/c/1")
    assert everything(root) == ["a", "a/b", "a/b/c", "a/b/c/2", "a/d"]
    await storage.delete("a/b/c/2")
    assert everything(root) == ["a", "a/d"]
    await storage.delete("a/d")
    assert everything(root) == []
    assert root.exists()


async def test_storing_where_others_delete_the_last_object_always_works(storage: LocalStorage) -> None:
    async def come_and_go(name: int) -> None:
        for _ in range(60):
            await storage.put(f"a/b/{name}", b"x")
            assert await storage.get(f"a/b/{name}") == b"x"
            await storage.delete(f"a/b/{name}")

    await asyncio.gather(*(come_and_go(name) for name in range(4)))


async def test_what_a_killed_writer_left_is_no_object(storage: LocalStorage, root: Path) -> None:
    await storage.put("a/k", b"x")
    (root / "a" / ".waybill-0123.tmp").write_bytes(b"half")
    assert [each.key async for each in storage.list()] == ["a/k"]


# Runs where files cannot grow: on a small volume of its own if one may be mounted, or else under a file size limit.
_FULL = """
import asyncio, ctypes, json, os, resource, signal, sys
from pathlib import Path
from waybill.failures import classify
from waybill.storage import LocalStorage

root = Path(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
user, group = os.getuid(), os.getgid()
mounted = False
if libc.unshare(0x10000000 | 0x00020000) == 0:  # a user and a mount namespace of our own
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path("/proc/self", name).write_text(text)
    mounted = libc.mount(b"small", os.fsencode(root), b"tmpfs", 0, b"size=2m") == 0
if not mounted:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**21, 2**21))

async def main():
    storage = LocalStorage(root)
    await storage.put("a/old", b"old")
    async def endless():
        while True:
            yield bytes(300_000)
    failures = []
    for key in ("a/old", "a/new"):
        try:
            await storage.put(key, endless())
        except Exception as error:
            failures.append(error)
    left = sorted(each.name for each in root.rglob("*") if each.is_file())
    await storage.put("a/small", bytes(100_000))  # there is room again: nothing of the failed ones is left
    seen = [classify(each) for each in failures]
    print(json.dumps({
        "mounted": mounted,
        "errors": [[type(each).__name__, each.message] for each in failures],
        "codes": [[each.code, each.status, each.retryable] for each in seen],
        "old": (await storage.get("a/old")).decode(), "left": left, "free": await storage.free_space(),
    }))

asyncio.run(main())
"""


def test_a_really_full_disk_is_an_error_to_wait_out(root: Path) -> None:
    root.mkdir()
    run = subprocess.run([sys.executable, "-c", _FULL, str(root)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["codes"] == [[Code.IO_ERROR, 507, True]] * 2
    assert (found["old"], found["left"]) == ("old", ["old"])
    if found["mounted"]:
        assert [name for name, _ in found["errors"]] == ["StorageFull"] * 2
        assert all("disk is full" in message for _, message in found["errors"])
        assert found["free"] < 2**21


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EIO, errno.ENOSPC, errno.EMFILE])
async def test_whatever_the_disk_refuses_is_said_kindly_and_may_be_repeated(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    await storage.put("a/k", b"x")

    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number), "/some/secret/place")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        for attempt in (
            storage.get("a/k"),
            storage.put("a/k", b"x"),
            storage.exists("a/k"),
            anext(storage.stream("a/k")),
        ):
            with pytest.raises(IoFailure) as failed:
                await attempt
            seen = classify(failed.value)
            assert (seen.code, seen.retryable, seen.of_dependency) == (Code.IO_ERROR, True, True)
            assert (seen.dependency, seen.away) == ("storage", number == errno.ENOSPC)
            assert "secret" not in f"{seen.message}{seen.detail}"
            assert isinstance(failed.value, StorageFull) == (number == errno.ENOSPC)
    assert await storage.get("a/k") == b"x"


async def test_a_folder_that_cannot_be_one_is_found_out_by_the_check(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(IoFailure):
        await LocalStorage(tmp_path / "file" / "storage").check()


async def test_room_is_counted_before_the_first_object_too(storage: LocalStorage, root: Path) -> None:
    assert not root.exists()
    free = await storage.free_space()
    assert free is not None
    assert free > 0


async def test_uploads_are_turned_away_while_there_is_still_room_for_results(storage: LocalStorage) -> None:
    free = await storage.free_space()
    assert free is not None
    await Space(storage, 0).check()
    await Space(storage, free // 2).check()
    with pytest.raises(StorageFull, match="not enough room") as full:
        await Space(storage, free * 2).check()
    assert (classify(full.value).code, classify(full.value).status) == (Code.IO_ERROR, 507)
    with pytest.raises(StorageFull):
        await Space(storage, free // 2).check(incoming=free)


async def test_the_disk_is_asked_about_its_room_once_a_second(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    statvfs = os.statvfs

    def counted(place: Path) -> os.statvfs_result:
        asked.append(place)
        return statvfs(place)

    monkeypatch.setattr(os, "statvfs", counted)
    now = [100.0]
    space = Space(storage, 1, clock=lambda: now[0])
    await asyncio.gather(*(space.check() for _ in range(50)))
    assert len(asked) == 1
    now[0] += 1.5
    await space.check()
    assert len(asked) == 2


async def test_a_failing_write_is_noticed_though_the_next_piece_is_slow_to_come(
    storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: AtomicFile, chunk: bytes) -> None:
        raise StorageFull

    monkeypatch.setattr(AtomicFile, "write", full)

    async def two() -> AsyncIterator[bytes]:
        yield DATA
        await asyncio.sleep(0)
        yield DATA
        raise AssertionError("nobody should ask for a third piece")

    with pytest.raises(StorageFull):
        await storage.put("k", two())
    assert everything(root) == []
