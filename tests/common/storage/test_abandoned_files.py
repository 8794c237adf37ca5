"""Parts of documents whose writer was killed do not stay."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from waybill.storage import LocalStorage

KILLED = """
import asyncio, os, sys
from pathlib import Path
from waybill.storage import LocalStorage
async def data():
    yield b"%PDF" + bytes(3_000_000)
    await asyncio.sleep(0)
    yield bytes(3_000_000)
    os.kill(os.getpid(), 9)
asyncio.run(LocalStorage(Path(sys.argv[1])).put("uploads/26/11/18/a.pdf", data()))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "storage"


def files(root: Path) -> list[Path]:
    return sorted(one for one in root.rglob("*") if one.is_file())


def kill_a_writer(root: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, root], check=False).returncode == -9
    (left,) = files(root)
    assert left.stat().st_size > 0, "a part of the document"


async def test_what_a_killed_writer_left_is_removed_at_once(root: Path) -> None:
    storage = LocalStorage(root)
    kill_a_writer(root)
    assert await storage.remove_abandoned(dry_run=True) == 1
    assert len(files(root)) == 1
    assert await storage.remove_abandoned() == 1
    assert files(root) == []
    assert await storage.remove_abandoned() == 0


async def test_what_is_being_written_stays(root: Path) -> None:
    storage, go_on = LocalStorage(root), asyncio.Event()

    async def data() -> AsyncIterator[bytes]:
        yield b"1" * 2_000_000
        assert len(files(root)) == 1
        assert await storage.remove_abandoned(older_than=0) == 0
        go_on.set()
        yield b"2"

    stored = await storage.put("a/b", data())
    assert go_on.is_set()
    assert (await storage.size("a/b"), stored.bytes) == (2_000_001, 2_000_001)
    assert await storage.remove_abandoned(older_than=0) == 0
    assert files(root) == [root / "a" / "b"]


async def test_a_writer_whose_file_was_removed_before_it_was_locked_takes_another(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, removed = LocalStorage(root), list[str]()
    flock = fcntl.flock

    def late(file: int, how: int) -> None:
        if not removed:
            (abandoned,) = files(root)
            abandoned.unlink()
            removed.append(abandoned.name)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    await storage.put("a", b"1")
    assert removed
    assert await storage.get("a") == b"1"


async def test_what_release_0_1_0_left_goes_by_its_age(root: Path) -> None:
    storage = LocalStorage(root)
    await storage.put("uploads/26/11/18/a.pdf", b"1")
    old, new, other = (root / "uploads/26/11/18" / name for name in (".waybill-0a.tmp", ".waybill-0b.tmp", ".nfs01"))
    for one in (old, new, other):
        one.write_bytes(b"%PDF")
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    assert await storage.remove_abandoned() == 0, "that would mean going through all folders"
    assert await storage.remove_abandoned(older_than=3600, dry_run=True) == 1
    assert await storage.remove_abandoned(older_than=3600) == 1
    assert not old.exists()
    assert new.exists()
    assert other.exists()
