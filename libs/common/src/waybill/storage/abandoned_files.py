"""Files that were being written when their writer was killed. They are parts of documents, and no row will name them.

A writer keeps its file locked (`files.atomic`), and the kernel releases the lock when the process ends. So whoever gets
the lock of such a file knows that its writer is dead. Release 0.1.0 wrote without a lock, beside the finished files;
there only the age tells.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waybill.files.atomic import is_temporary
from waybill.files.paths import folder_under

WRITING = ".waybill-writing"
"""The folder in which files are until they are complete: one place to look, however many objects there are."""

_GONE = (FileNotFoundError, NotADirectoryError)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_A_DAY = 86400.0
"""No upload takes as long. It tells a dead writer where the file system knows no locks."""


def remove_abandoned(root: Path, *, older_than: float | None, dry_run: bool) -> int:
    """Remove them, or only count them. With `older_than` also those of release 0.1.0 that are as old, in seconds."""
    count = 0
    with suppress(*_GONE), folder_under(root, f"{WRITING}/any") as (folder, _):
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if is_temporary(entry.name)]
        count += sum(_remove(folder, name, dry_run=dry_run) for name in names)
    if older_than is not None:
        with suppress(*_GONE):
            here = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
            try:
                count += _remove_old(here, time.time() - older_than, dry_run=dry_run)
            finally:
                os.close(here)
    return count


def _remove(folder: int, name: str, *, dry_run: bool) -> bool:
    with suppress(*_GONE), _opened(folder, name) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False  # its writer lives
        except OSError:
            if os.fstat(file).st_mtime > time.time() - _A_DAY:
                return False
        if not dry_run:
            os.unlink(name, dir_fd=folder)  # under the lock: a writer that locks it now sees that it is gone
        return True
    return False


def _remove_old(folder: int, until: float, *, dry_run: bool) -> int:
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(*_GONE):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name == WRITING:
                        continue
                    inner = os.open(entry.name, _FOLDER, dir_fd=folder)
                    try:
                        count += _remove_old(inner, until, dry_run=dry_run)
                    finally:
                        os.close(inner)
                elif is_temporary(entry.name) and entry.stat(follow_symlinks=False).st_mtime <= until:
                    if not dry_run:
                        os.unlink(entry.name, dir_fd=folder)
                    count += 1
    return count


@contextmanager
def _opened(folder: int, name: str) -> Iterator[int]:
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)
