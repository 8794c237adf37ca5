"""Listing a folder of objects: a batch at a time, so that a million of them need no more memory than a thousand."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from waybill.files.paths import folder_under
from waybill.storage.interface import Listed

_BATCH = 1000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = (FileNotFoundError, NotADirectoryError)


class Walk:
    """The objects below a folder. Follows no link; temporary files, which start with a dot, are no objects.

    The lock lets an event loop call each step in a thread: a cancelled caller may close while one is still running.
    """

    def __init__(self, root: Path, prefix: str) -> None:
        self._objects = _under(root, prefix)
        self._lock = threading.Lock()

    def some(self) -> list[Listed]:
        """The next ones; none at the end."""
        with self._lock:
            return list(islice(self._objects, _BATCH))

    def close(self) -> None:
        with self._lock:
            self._objects.close()


def _under(root: Path, prefix: str) -> Generator[Listed, None, None]:
    # `folder_under` wants a name in the folder; which one does not matter.
    with suppress(*_GONE), folder_under(root, f"{prefix}/any" if prefix else "any") as (folder, _):
        yield from _below(folder, f"{prefix}/" if prefix else "")


def _below(folder: int, path: str) -> Generator[Listed, None, None]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            with suppress(*_GONE):  # deleted since we saw its name
                if entry.is_dir(follow_symlinks=False):
                    inner = os.open(entry.name, _FOLDER, dir_fd=folder)
                    try:
                        yield from _below(inner, f"{path}{entry.name}/")
                    finally:
                        os.close(inner)
                elif entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    yield Listed(f"{path}{entry.name}", found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))
