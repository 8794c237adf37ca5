"""The folder that backups are kept in: complete ones by their names, and none that is half written or half removed.

A backup is written under a name that starts with a dot, and renamed when all of it is on the disk. It is removed the
other way round.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from waybill.errors import Refused
from waybill_cli.local.lock import LockedError, take_lock

OBJECTS = "objects.jsonl"
_PREFIX = "waybill-"
_HALF, _GONE = ".half-", ".gone-"


def backups_in(folder: Path) -> list[Path]:
    """The complete backups in a folder, the oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.startswith(_PREFIX) and path.is_dir())


def newest_with_objects(folder: Path) -> Path | None:
    """The newest backup that contains the storage."""
    return next((path for path in reversed(backups_in(folder)) if (path / OBJECTS).exists()), None)


@contextmanager
def new_backup(folder: Path, at: datetime) -> Iterator[Path]:
    """A folder to write a backup into. It becomes a backup when the block ends well, and vanishes when it does not."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(folder):
        for left in (*folder.glob(f"{_HALF}*"), *folder.glob(f"{_GONE}*")):  # of one that was killed
            shutil.rmtree(left)
        name = _free_name(folder, f"{_PREFIX}{at:%Y-%m-%dT%H-%M-%SZ}")
        half = folder / f"{_HALF}{name}"
        half.mkdir(mode=0o700)
        try:
            yield half
            _to_disk(half)
            half.rename(folder / name)
            _sync(folder)
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)
            raise


def remove_all_but(folder: Path, number: int) -> list[Path]:
    """Keep the newest ones, and remove the others."""
    removed = backups_in(folder)[:-number]
    for path in removed:
        gone = path.with_name(f"{_GONE}{path.name}")
        path.rename(gone)
        shutil.rmtree(gone)
    return removed


def _free_name(folder: Path, name: str) -> str:
    """The name, or the next one of the same second, which is listed after it."""
    names = [name, *(f"{name}-{number}" for number in range(2, 10))]
    return next(each for each in names if not (folder / each).exists())


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    try:
        lock = take_lock(folder / ".lock")
    except LockedError as error:
        raise Refused(f"Another backup into {folder} is under way (process {error.holder}). Wait for it.") from None
    try:
        yield
    finally:
        os.close(lock)


def _to_disk(half: Path) -> None:
    # The objects were written to the disk one by one; what remains are our own files, and the folders.
    for path in (*(each for each in half.iterdir() if each.is_file()), *half.rglob("*/"), half):
        _sync(path)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
