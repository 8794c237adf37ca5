"""Files of the home folder that only their owner may read: passwords, locks, logs."""

from __future__ import annotations

import os
from pathlib import Path


def open_private(path: Path, flags: int) -> int:
    """Open a file for its owner alone, creating it if need be; the caller closes it.

    As root in somebody else's home (`sudo make up`) the file goes to that somebody, or their next start as
    themselves could not open it.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if os.geteuid() == 0:
        folder = path.parent.stat()
        os.fchown(descriptor, folder.st_uid, folder.st_gid)
    return descriptor


def write_private(path: Path, text: str) -> None:
    """Write a file for its owner alone; readers see the old text or the new, never half of it."""
    half = path.with_name(path.name + ".half")
    half.unlink(missing_ok=True)
    with os.fdopen(open_private(half, os.O_WRONLY), "w") as file:
        file.write(text)
    half.replace(path)
