"""The folder for documents and answers during a conversion. Each process has its own, inside one that is shared.

A process that was killed leaves its folder behind, and the next one to start removes it. It recognises such a folder by
its lock, which the kernel releases when a process ends.
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
_NAMES = ("document", "mappings", "answer", "bookmark", "scratch")


@dataclass(frozen=True, slots=True)
class RequestFiles:
    """The files of one request."""

    document: Path
    mappings: Path
    answer: Path
    bookmark: Path
    """How far a parser is with an answer that is made in parts."""
    scratch: Path
    """A document that a parser takes out of what was received."""

    def drop_received(self) -> None:
        """Remove what nobody needs any more when the answer has been made."""
        for done in (self.document, self.mappings, self.bookmark, self.scratch):
            done.unlink(missing_ok=True)


class Spool:
    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(root / _LOCK):  # otherwise a process that starts now could remove our new folder
            _remove_dead(root)
            self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root.resolve()))
            self._lock = _open_lock(self.folder / _LOCK)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._numbers = itertools.count(1)

    @contextmanager
    def files(self) -> Iterator[RequestFiles]:
        """The paths of a request's files, which are deleted at the end if they exist."""
        number = next(self._numbers)
        files = RequestFiles(*(self.folder / f"{number}.{name}" for name in _NAMES))
        try:
            yield files
        finally:
            files.drop_received()
            files.answer.unlink(missing_ok=True)

    def close(self) -> None:
        # We hold the lock, so that a process that starts does not find a half-deleted folder.
        with _locked(self._root / _LOCK):
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)


def _remove_dead(root: Path) -> None:
    for folder in root.glob(f"{_PREFIX}*"):
        try:
            lock = _open_lock(folder / _LOCK)
        except OSError:
            continue  # it is gone, or no folder, or another user's
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its process is alive
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
