"""Files in the home folder that only their owner may read: passwords, locks, logs."""

from __future__ import annotations

import os
from pathlib import Path


def open_private(path: Path, flags: int) -> int:
    """Open a file that only its owner may read, and create it if necessary. The caller closes it.

    If root starts Waybill in somebody else's home (`sudo make up`), the file belongs to that user. Otherwise the user
    could not open it later.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if os.geteuid() == 0:
        folder = path.parent.stat()
        os.fchown(descriptor, folder.st_uid, folder.st_gid)
    return descriptor


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read. Readers see the old text or the new one, nothing in between."""
    half = path.with_name(path.name + ".half")
    half.unlink(missing_ok=True)
    with os.fdopen(open_private(half, os.O_WRONLY), "w") as file:
        file.write(text)
    half.replace(path)
