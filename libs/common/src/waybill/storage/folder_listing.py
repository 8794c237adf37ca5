"""Lists the objects in a folder, a thousand at a time, so that memory use does not depend on their number."""

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


class FolderListing:
    """The objects below a folder. It follows no links and skips temporary files, which start with a dot.

    The lock lets an event loop call each step in a thread, because a cancelled caller may close it during a step.
    """

    def __init__(self, root: Path, prefix: str) -> None:
        self._objects = _under(root, prefix)
        self._lock = threading.Lock()

    def some(self) -> list[Listed]:
        """The next objects; an empty list at the end."""
        with self._lock:
            return list(islice(self._objects, _BATCH))

    def close(self) -> None:
        with self._lock:
            self._objects.close()


def _under(root: Path, prefix: str) -> Generator[Listed, None, None]:
    # `folder_under` needs the name of a file in the folder, but any name works.
    with suppress(*_GONE), folder_under(root, f"{prefix}/any" if prefix else "any") as (folder, _):
        yield from _below(folder, f"{prefix}/" if prefix else "")


def _below(folder: int, path: str) -> Generator[Listed, None, None]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            with suppress(*_GONE):  # it was deleted meanwhile
                if entry.is_dir(follow_symlinks=False):
                    inner = os.open(entry.name, _FOLDER, dir_fd=folder)
                    try:
                        yield from _below(inner, f"{path}{entry.name}/")
                    finally:
                        os.close(inner)
                elif entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    yield Listed(f"{path}{entry.name}", found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))
