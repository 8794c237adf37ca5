"""Under its name a file is whole: the new one or the old one, never half of either."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from waybill.errors import StorageFull
from waybill.failures import classify
from waybill.files import AtomicFile, write_atomic

OLD, NEW = b"old" * 1000, b"new" * 1000


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_it_writes_and_says_what(tmp_path: Path) -> None:
    written = write_atomic(tmp_path / "f", NEW)
    assert (tmp_path / "f").read_bytes() == NEW
    assert (written.bytes, written.sha256) == (len(NEW), hashlib.sha256(NEW).hexdigest())
    assert write_atomic(tmp_path / "f", iter([b"a", b"", b"bc"])).bytes == 3
    assert (tmp_path / "f").read_bytes() == b"abc"
    assert names(tmp_path) == ["f"]


def test_until_the_end_the_old_file_is_there(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)

    def chunks() -> Iterator[bytes]:
        for at in range(0, len(NEW), 100):
            assert path.read_bytes() == OLD
            yield NEW[at : at + 100]

    write_atomic(path, chunks())
    assert path.read_bytes() == NEW


@pytest.mark.parametrize("error", [RuntimeError("source broke"), KeyboardInterrupt(), GeneratorExit()])
def test_whatever_goes_wrong_nothing_is_left_behind(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)

    def chunks() -> Iterator[bytes]:
        yield NEW
        raise error

    with pytest.raises(type(error)):
        write_atomic(path, chunks())
    assert path.read_bytes() == OLD
    assert names(tmp_path) == ["f"]


def test_a_folder_in_the_way_is_an_error_that_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomic(tmp_path / "f", NEW)
    assert names(tmp_path) == ["f"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(OLD)
    (tmp_path / "f").symlink_to("elsewhere")
    write_atomic(tmp_path / "f", NEW)
    assert not (tmp_path / "f").is_symlink()
    assert (tmp_path / "elsewhere").read_bytes() == OLD


def put(folder: int) -> None:
    with AtomicFile(folder, "f") as file:
        file.write(NEW)
        file.commit()


def failing(number: int) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace"])
def test_a_full_disk_is_said_clearly_at_whichever_step_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    folder = os.open(tmp_path, os.O_RDONLY)
    with monkeypatch.context() as patched:
        patched.setattr(os, step, failing(number))
        with pytest.raises(StorageFull, match="disk is full"):
            put(folder)
    os.close(folder)
    assert path.read_bytes() == OLD
    assert names(tmp_path) == ["f"]


def test_a_job_that_meets_a_full_disk_may_try_again() -> None:
    assert classify(StorageFull()).retryable


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file size limit")
def test_a_really_full_volume_leaves_the_old_file(tmp_path: Path) -> None:
    """Run where a file cannot grow past a limit: the nearest thing to a full disk without being root."""
    (tmp_path / "f").write_bytes(OLD)
    script = (
        "import resource, signal, sys; from pathlib import Path; from waybill.files import write_atomic\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "try: write_atomic(Path(sys.argv[1]), b'x' * 20_000)\n"
        "except OSError as error: print(error.errno)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "f")], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) == errno.EFBIG
    assert (tmp_path / "f").read_bytes() == OLD
    assert names(tmp_path) == ["f"]


def test_what_is_committed_has_reached_the_disk_in_the_right_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def seen_fsync(descriptor: int) -> None:
        steps.append("folder" if os.path.samestat(os.fstat(descriptor), tmp_path.stat()) else "file")
        fsync(descriptor)

    def seen_replace(*arguments: Any, **options: Any) -> None:
        steps.append("rename")
        replace(*arguments, **options)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen_replace)
    write_atomic(tmp_path / "f", NEW)
    assert steps == ["file", "rename", "folder"]


def test_a_process_killed_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(OLD)
    script = (
        "import os, sys; from pathlib import Path; from waybill.files import write_atomic\n"
        "def chunks():\n    yield b'x' * 10_000\n    os.kill(os.getpid(), 9)\n"
        "write_atomic(Path(sys.argv[1]), chunks())\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path / "f")], check=False)
    assert run.returncode == -9
    assert (tmp_path / "f").read_bytes() == OLD


def test_a_finished_file_cannot_be_written_to(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    with AtomicFile(folder, "f") as file:
        file.commit()
        with pytest.raises(ValueError, match="finished"):
            file.write(b"more")
    os.close(folder)
    assert (tmp_path / "f").read_bytes() == b""
