"""Keeps untrusted paths inside a folder.

`resolve_under` checks a path and returns it. Somebody could replace a folder with a symbolic link between the check and
the use. Code that opens files therefore uses `open_under`, which goes from one open folder to the next and follows no
links. The root itself is trusted and may be a link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waybill.errors import UnsafePath
from waybill.files.names import parts_of

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

NEW_FILE = 0o660
NEW_FOLDER = 0o770
"""The umask is applied to both. Services of one deployment may run as different users of one group."""


def resolve_under(root: Path, untrusted: str) -> Path:
    """The path inside `root`, whether it exists or not. Raises UnsafePath if it could be outside."""
    path = root.resolve()
    for part in parts_of(untrusted):
        path /= part
        if path.is_symlink():
            raise UnsafePath(f"{untrusted!r} leads through a symbolic link.")
    return path


def open_under(root: Path, untrusted: str, flags: int = os.O_RDONLY, mode: int = NEW_FILE) -> int:
    """Like `os.open`, but only for a regular file inside `root`."""
    with folder_under(root, untrusted) as (folder, name):
        # Without O_NONBLOCK, a named pipe would block us for ever. It has no effect on a regular file.
        try:
            file = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=folder)
        except OSError:
            _refuse_link(folder, name, untrusted)
            raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise UnsafePath(f"{untrusted!r} is not a regular file.")
    return file


@contextmanager
def folder_under(root: Path, untrusted: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder of `untrusted`. Yields its descriptor, and the name of the file in it."""
    *folders, name = parts_of(untrusted)
    if create:
        root.mkdir(NEW_FOLDER, parents=True, exist_ok=True)
    here = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in folders:
            below = _enter(here, part, untrusted, create=create)
            os.close(here)
            here = below
        yield here, name
    finally:
        os.close(here)


def _enter(folder: int, part: str, untrusted: str, *, create: bool) -> int:
    while True:
        try:
            return os.open(part, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            if not create:
                raise
        except OSError:
            _refuse_link(folder, part, untrusted)
            raise
        try:
            os.mkdir(part, NEW_FOLDER, dir_fd=folder)
        except FileExistsError:
            continue  # somebody else created it first
        os.fsync(folder)  # a file is only durable if its folders are


def _refuse_link(folder: int, name: str, untrusted: str) -> None:
    """Raise UnsafePath if a link was the reason of a failure. The error number differs between systems."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise UnsafePath(f"{untrusted!r} leads through a symbolic link.")
