"""Writes a part of a pack: what a parser adds to an answer in one call.

Whole frames reach the file one by one, so that those before the item that kills the parser can be used.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from waybill.files.packs import frame_head
from waybill_gateway.bookmark import BookmarkWriter

_PIECE = 1024 * 1024


class PartWriter:
    def __init__(self, answer: Path, bookmark: Path) -> None:
        self._bookmark = BookmarkWriter(bookmark)
        self._file = answer.open("wb", buffering=0)
        self.size = 0
        """Bytes of the frames that are complete."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bookmark.close()
        self._file.close()

    def begins(self, start: Any) -> None:
        """Note what is to be done next."""
        self._bookmark.note(start, self.size)

    def write(self, header: Mapping[str, Any], content: bytes = b"") -> None:
        """Append a frame. If there is no room for it, nothing is appended."""
        head = frame_head(header, len(content))
        try:
            written = os.writev(self._file.fileno(), (head, content))
            if written < len(head) + len(content):  # the disk or the file is full, as the next write says
                self._rest((head + content)[written:])
        except OSError:
            self._undo()
            raise
        self.size += len(head) + len(content)

    def copy(self, header: Mapping[str, Any], content: BinaryIO, size: int) -> None:
        """Append a frame whose content is in a file, at its beginning."""
        if isinstance(content, io.BytesIO):
            self.write(header, content.read(size))
            return
        try:
            self._file.write(frame_head(header, size))
            # Through a buffer, because an unbuffered file may write less than it is given.
            with open(os.dup(self._file.fileno()), "wb") as buffered:  # noqa: PTH123 - a descriptor is no path
                shutil.copyfileobj(content, buffered, _PIECE)
        except OSError:
            self._undo()
            raise
        self.size = self._file.tell()

    def _rest(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]

    def _undo(self) -> None:
        self._file.truncate(self.size)
        self._file.seek(self.size)
