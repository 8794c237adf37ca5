"""Which files go in which request: few requests, because they are what the API counts, and none too large."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_FILES = 20
MOST_BYTES = 190 * 1024 * 1024
"""What the API takes in one request is 200 MB, form and all."""
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class File:
    """A file to submit. One that is named twice is two of them."""

    path: Path
    bytes: int


Sent = Callable[[File, int], None]
"""Called with a file and the bytes of it that went out since the last call."""


class FileChanged(Exception):
    """It cannot be sent as it was announced."""


def batches(files: Sequence[File]) -> Iterator[list[File]]:
    """The files in their order, as many together as one request may carry."""
    batch: list[File] = []
    size = 0
    for file in files:
        if batch and (len(batch) == MOST_FILES or size + file.bytes > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.bytes
    if batch:
        yield batch


class Form:
    """The multipart form of a batch, read from disk while it is sent."""

    def __init__(self, batch: Sequence[File], fields: dict[str, str], sent: Sent) -> None:
        self._boundary = secrets.token_hex(16)
        self._batch = batch
        self._sent = sent
        self._fields = "".join(
            f'--{self._boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        ).encode()
        self._tail = f"--{self._boundary}--\r\n".encode()
        size = len(self._fields) + len(self._tail)
        size += sum(len(self._head(file)) + file.bytes + 2 for file in batch)
        self.headers = {
            "Content-Type": f"multipart/form-data; boundary={self._boundary}",
            "Content-Length": str(size),
        }

    def __iter__(self) -> Iterator[bytes]:
        yield self._fields
        for file in self._batch:
            yield self._head(file)
            for chunk in _read(file):
                yield chunk
                self._sent(file, len(chunk))
            yield b"\r\n"
        yield self._tail

    def _head(self, file: File) -> bytes:
        # Quotes and line ends in a name are written as browsers write them.
        name = file.path.name.replace("\\", "\\\\").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        return (
            f'--{self._boundary}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
            "Content-Type: application/pdf\r\n\r\n"
        ).encode("utf-8", "surrogateescape")


def _read(file: File) -> Iterator[bytes]:
    """Exactly as many bytes as were announced, should the file be growing."""
    left = file.bytes
    try:
        with file.path.open("rb") as opened:
            while left and (chunk := opened.read(min(_CHUNK, left))):
                left -= len(chunk)
                yield chunk
    except OSError as error:
        raise FileChanged(f"{file.path} cannot be read: {error.strerror or error}.") from error
    if left:
        raise FileChanged(f"{file.path} became shorter while it was sent.")
