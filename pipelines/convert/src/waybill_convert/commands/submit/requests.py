"""Packs files into upload requests: as few as possible, because the API limits their rate, and none too large."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_FILES = 20
MOST_BYTES = 190 * 1024 * 1024
"""The API accepts requests of up to 200 MB, including the form around the files."""
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class File:
    """A file to submit. A file that was named twice is submitted twice."""

    path: Path
    bytes: int


Sent = Callable[[File, int], None]
"""Called with a file and how many of its bytes were sent since the last call."""


class FileChanged(Exception):
    """A file changed while it was sent, so the announced length is wrong."""


def requests_for(files: Sequence[File]) -> Iterator[list[File]]:
    """The files of each request, in their order: as many as one request may carry."""
    together: list[File] = []
    size = 0
    for file in files:
        if together and (len(together) == MOST_FILES or size + file.bytes > MOST_BYTES):
            yield together
            together, size = [], 0
        together.append(file)
        size += file.bytes
    if together:
        yield together


class UploadRequest:
    """The multipart form of one request, read from disk while it is sent."""

    def __init__(self, files: Sequence[File], fields: dict[str, str], sent: Sent) -> None:
        self._boundary = secrets.token_hex(16)
        self._files = files
        self._sent = sent
        self._leading = "".join(
            f'--{self._boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        ).encode()
        self._tail = f"--{self._boundary}--\r\n".encode()
        size = len(self._leading) + len(self._tail)
        size += sum(len(self._head(file)) + file.bytes + 2 for file in files)
        self.headers = {
            "Content-Type": f"multipart/form-data; boundary={self._boundary}",
            "Content-Length": str(size),
        }

    def __iter__(self) -> Iterator[bytes]:
        yield self._leading
        for file in self._files:
            yield self._head(file)
            for chunk in _read(file):
                yield chunk
                self._sent(file, len(chunk))
            yield b"\r\n"
        yield self._tail

    def _head(self, file: File) -> bytes:
        # Browsers escape quotes and line breaks in a name like this.
        name = file.path.name.replace("\\", "\\\\").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        return (
            f'--{self._boundary}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode("utf-8", "surrogateescape")


def _read(file: File) -> Iterator[bytes]:
    """Exactly as many bytes as were announced, even if the file grows."""
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
