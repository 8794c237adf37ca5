"""Writes a file atomically: under its name it is complete or absent, even after a power cut.

The data goes to a temporary file on the same disk, which is flushed and renamed. Then the folder is flushed. The
temporary file is locked as long as its writer lives, so that others can tell which ones were abandoned.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NoReturn
from uuid import uuid4

from waybill.errors import StorageFull
from waybill.files.paths import NEW_FILE
from waybill.messages import msg

_TEMPORARY = re.compile(r"\.waybill-[0-9a-f]{1,32}\.tmp")


def is_temporary(name: str) -> bool:
    """Whether a file with this name is one that is still being written, or was when its writer was killed."""
    return _TEMPORARY.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Written:
    """What was written."""

    bytes: int
    sha256: str


def write_atomic(path: Path, data: bytes | Iterable[bytes], *, mode: int = NEW_FILE) -> Written:
    """Write all of `data` to `path`. If that fails, the previous file stays as it was."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with AtomicFile(folder, path.name, mode=mode) as file:
            for chunk in (data,) if isinstance(data, bytes) else data:
                file.write(chunk)
            return file.commit()
    finally:
        os.close(folder)


class AtomicFile:
    """A file that is written piece by piece. Without `commit`, nothing remains of it.

    `folder` is the descriptor of its folder, `name` its name there. The lock lets an event loop call each step in a
    thread, because a cancelled caller may abort while a write is still running.
    """

    def __init__(self, folder: int, name: str, *, mode: int = NEW_FILE) -> None:
        self._name = name
        self._temporary = ""
        self._lock = threading.Lock()
        self._hash = hashlib.sha256()
        self._size = 0
        self._open = True
        self._folder = os.dup(folder)
        try:
            self._file = self._locked_file(mode)
        except OSError as error:
            os.close(self._folder)
            self._give_up(error)

    def write(self, chunk: bytes) -> None:
        with self._lock:
            self._must_be_open()
            try:
                self._write_all(chunk)
            except OSError as error:
                self._give_up(error)
            self._hash.update(chunk)
            self._size += len(chunk)

    def commit(self, folder: int | None = None) -> Written:
        """Give the file its name, durably: in another folder on the same disk, if one is given."""
        with self._lock:
            self._must_be_open()
            target = self._folder if folder is None else folder
            try:
                os.fsync(self._file)
                os.replace(self._temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=target)
                self._temporary = ""
                os.fsync(target)
            except OSError as error:
                self._give_up(error)
            self._close()
        return Written(self._size, self._hash.hexdigest())

    def abort(self) -> None:
        """Discard the file. After `commit` or a previous `abort`, it does nothing."""
        with self._lock:
            if self._open:
                self._close()

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.abort()

    def __del__(self) -> None:
        # A caller that was cancelled while a thread created this object never gets to call `abort`.
        if hasattr(self, "_file"):
            self.abort()

    def _locked_file(self, mode: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            self._temporary = f".waybill-{uuid4().hex}.tmp"
            file = os.open(self._temporary, flags, mode, dir_fd=self._folder)
            with suppress(OSError):  # some network file systems know no locks
                fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file).st_nlink:
                return file
            # Whoever removes abandoned files found it before it was locked.
            os.close(file)

    def _must_be_open(self) -> None:
        if not self._open:
            raise ValueError("this file is finished")

    def _write_all(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def _close(self) -> None:
        self._open = False
        if self._temporary:
            with suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._folder)
        os.close(self._file)
        os.close(self._folder)

    def _give_up(self, error: OSError) -> NoReturn:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(
                msg("storage.full_try_again"),
                detail={"file": self._name, "errno": errno.errorcode[error.errno or 0]},
            ) from error
        raise error
