"""Files on disk as a multipart form, which is read while it is sent."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class UploadFile:
    """A file to send. A file that was named twice is sent twice."""

    path: Path
    bytes: int


Sent = Callable[[UploadFile, int], None]
"""Called with a file and how many of its bytes were sent since the last call."""


class FileChanged(Exception):
    """A file changed while it was sent, so the announced length is wrong."""


class UploadRequest:
    """The multipart form of one request, read from disk while it is sent."""

    def __init__(self, name: str, files: Sequence[UploadFile], fields: Mapping[str, str]) -> None:
        """`name` is that of the form's field with the files."""
        self._boundary = secrets.token_hex(16)
        self._name = name
        self._files = files
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

    def body(self, sent: Sent) -> Iterator[bytes]:
        """The form, once more each time. `sent` is called as the files go out."""
        yield self._leading
        for file in self._files:
            yield self._head(file)
            for chunk in _read(file):
                yield chunk
                sent(file, len(chunk))
            yield b"\r\n"
        yield self._tail

    def _head(self, file: UploadFile) -> bytes:
        # Browsers escape quotes and line breaks in a name like this.
        name = file.path.name.replace("\\", "\\\\").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        return (
            f'--{self._boundary}\r\nContent-Disposition: form-data; name="{self._name}"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode("utf-8", "surrogateescape")


def _read(file: UploadFile) -> Iterator[bytes]:
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
