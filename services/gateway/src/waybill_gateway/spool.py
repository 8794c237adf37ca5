"""Where documents and answers lie while they are converted: a folder of this process, in one that several may share.

A process that was killed leaves its folder behind; the next one to start removes it. A lock, which the kernel frees
however its holder ends, tells the folders of the dead from those of the living.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "run-"
_LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Place:
    """The two files of one request."""

    document: Path
    answer: Path

    def drop_document(self) -> None:
        self.document.unlink(missing_ok=True)


class Spool:
    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(root / _LOCK):  # or another process that starts could take our new folder for a dead one's
            _remove_dead(root)
            self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root.resolve()))
            self._lock = _open_lock(self.folder / _LOCK)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._numbers = itertools.count(1)

    @contextmanager
    def place(self) -> Iterator[Place]:
        """Two names in the folder; whatever is there at the end goes."""
        number = next(self._numbers)
        place = Place(self.folder / f"{number}.document", self.folder / f"{number}.answer")
        try:
            yield place
        finally:
            place.drop_document()
            place.answer.unlink(missing_ok=True)

    def close(self) -> None:
        # Under the lock: a process that starts would otherwise come upon a folder that is half gone.
        with _locked(self._root / _LOCK):
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)


def _remove_dead(root: Path) -> None:
    for folder in root.glob(f"{_PREFIX}*"):
        try:
            lock = _open_lock(folder / _LOCK)
        except OSError:
            continue  # gone meanwhile, no folder at all, or another user's: not ours to remove
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its process lives
        else:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = _open_lock(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
