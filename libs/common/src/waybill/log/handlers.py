"""Log handlers for standard error and for a rotating file that several processes may share.

The standard library's rotating handler loses lines when two processes rotate the same file. The processes of a worker
and of `waybill up` do share one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


def _report_lost(record: logging.LogRecord) -> None:
    # The standard library would print the record with its arguments, which may contain secrets.
    error = sys.exc_info()[0]
    with suppress(OSError, ValueError):  # standard error may be closed too
        sys.stderr.write(f"a line of {record.name} could not be logged: {error.__name__ if error else '?'}\n")


class Stream(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        _report_lost(record)


class RotatingFile(logging.Handler):
    """Appends whole lines. At `max_bytes` the file becomes `.1`, `.1` becomes `.2`, and the oldest is deleted."""

    def __init__(self, path: Path, max_bytes: int, backups: int) -> None:
        super().__init__()
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = self._open()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = (self.format(record) + "\n").encode(errors="backslashreplace")
            while True:
                with self._ours():
                    size = os.fstat(self._fd).st_size
                    if not size or size + len(line) <= self._max_bytes:
                        self._append(line)
                        return
                    self._rotate()
        except Exception:  # noqa: BLE001 - a full disk must not stop the work itself
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        _report_lost(record)

    def close(self) -> None:
        self.acquire()
        try:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1
        finally:
            self.release()
        super().close()

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def _append(self, line: bytes) -> None:
        while line:
            line = line[os.write(self._fd, line) :]

    @contextmanager
    def _ours(self) -> Iterator[None]:
        """Lock the file that currently has the name. It is a record lock, which forked children do not inherit."""
        while True:
            fcntl.lockf(self._fd, fcntl.LOCK_EX)
            if self._is_current():
                break
            # Another process rotated the file, or somebody removed it. Closing the old one releases its lock.
            fresh = self._open()
            os.close(self._fd)
            self._fd = fresh
        try:
            yield
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN)

    def _is_current(self) -> bool:
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(self._fd))

    def _rotate(self) -> None:
        # Rename the live file last, so that nobody can start and rotate a new one before.
        for number in range(self._backups - 1, 0, -1):
            older = self._numbered(number)
            if older.exists():
                older.replace(self._numbered(number + 1))
        self._path.replace(self._numbered(1))

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
