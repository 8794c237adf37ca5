"""Paths from strangers, kept inside a folder of ours.

`resolve_under` checks and answers with a path. Between the check and the use somebody could swap a folder for
a symbolic link, so what opens files goes through `open_under`, which walks from one open folder to the next
and follows no link on the way. The root itself is ours, and may be a link.
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
"""Less the umask; services of one deployment may run as different users of one group."""


def resolve_under(root: Path, untrusted: str) -> Path:
    """The path that `untrusted` names inside `root`, existing or not; UnsafePath if it could be outside."""
    path = root.resolve()
    for part in parts_of(untrusted):
        path /= part
        if path.is_symlink():
            raise UnsafePath(f"{untrusted!r} leads through a symbolic link.")
    return path


def open_under(root: Path, untrusted: str, flags: int = os.O_RDONLY, mode: int = NEW_FILE) -> int:
    """Open a regular file inside `root`; like `os.open`, but nothing leads outside."""
    with folder_under(root, untrusted) as (folder, name):
        # O_NONBLOCK, or a planted pipe would hold us for ever; it means nothing to a regular file.
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
    """Hold open the folder where `untrusted` lies: its descriptor, and the name left to use in it."""
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
            continue  # somebody else was faster
        os.fsync(folder)  # a file is only as durable as the folders on the way to it


def _refuse_link(folder: int, name: str, untrusted: str) -> None:
    """Say why an open failed, if a link is why; systems disagree about the error number."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise UnsafePath(f"{untrusted!r} leads through a symbolic link.")
