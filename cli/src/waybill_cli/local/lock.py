"""A lock on a folder that lasts as long as its process. The kernel releases it even after `kill -9`."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from waybill.files.private import open_private


class LockedError(Exception):
    """Another process holds the lock."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"locked by process {holder}")
        self.holder = holder
        """The pid that the process wrote into the lock file."""


def take_lock(path: Path) -> int:
    """Take the lock and write our pid into it. Closing the returned descriptor releases it."""
    lock = open_private(path, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 20).decode(errors="replace").strip()
        os.close(lock)
        raise LockedError(holder or "unknown") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock
