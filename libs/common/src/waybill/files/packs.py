"""Packs: many documents in one stream of bytes, each preceded by a header. The gateway and batches exchange them.

A pack is a sequence of frames: the length of the header in 4 bytes (big-endian), the header, and the content. The
header is a JSON object in UTF-8, whose `bytes` says how long the content is. The last frame of a pack has `"end": true`
and no content. A pack without it was cut off. We use no ZIP here, because a ZIP's directory is at its end, and no
multipart form, because its boundaries have to be searched for in every byte.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from typing import Any, BinaryIO

MEDIA_TYPE = "application/vnd.waybill.pack"
LONGEST_HEADER = 64 * 1024
_LENGTH = 4
_CHUNK = 256 * 1024

_as_json = json.JSONEncoder(separators=(",", ":")).encode
"""`json.dumps` would make an encoder for each frame."""

Frame = tuple[dict[str, Any], bytes]
"""A header and its content."""


class BadPack(ValueError):
    """These bytes are not a pack, or exceed the reader's limits."""


class CutOff(BadPack):
    """The pack has no end: whoever wrote it failed on the way."""

    def __init__(self) -> None:
        super().__init__("the pack was cut off")


def frame(header: Mapping[str, Any], content: bytes = b"") -> bytes:
    """One frame. `bytes` is set in its header."""
    return frame_head(header, len(content)) + content


def frame_head(header: Mapping[str, Any], size: int) -> bytes:
    """What precedes `size` bytes of content, for a writer that copies them from elsewhere."""
    # Non-ASCII is escaped, because a name from an archive may contain half a surrogate pair, which UTF-8 cannot.
    encoded = _as_json({**header, "bytes": size}).encode()
    if len(encoded) > LONGEST_HEADER:
        raise ValueError(f"the header of a frame has {len(encoded)} bytes; at most {LONGEST_HEADER} are allowed")
    return len(encoded).to_bytes(_LENGTH, "big") + encoded


def end_frame(header: Mapping[str, Any] | None = None) -> bytes:
    """The last frame of a pack."""
    return frame({"end": True, **(header or {})})


class PackWriter:
    """Writes a pack to a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        """Bytes so far."""

    def write(self, header: Mapping[str, Any], content: bytes = b"") -> int:
        """Append a frame. Returns the offset of its content in the pack."""
        head = frame_head(header, len(content))
        self._file.write(head)
        self._file.write(content)
        offset = self.size + len(head)
        self.size = offset + len(content)
        return offset

    def end(self, header: Mapping[str, Any] | None = None) -> None:
        """Append the end frame."""
        self.write({"end": True, **(header or {})})


class PackDecoder:
    """Turns chunks of bytes, cut anywhere, into frames. It holds no more than one frame and one chunk."""

    def __init__(self, *, most_bytes: int) -> None:
        """`most_bytes` is the longest content that a frame may have."""
        self._most = most_bytes
        self._received = bytearray()
        self._header: dict[str, Any] | None = None
        """That of the frame whose content is awaited."""
        self._content_at = 0
        """How far behind the beginning of its frame that content begins."""
        self.ended = False
        """Whether the last frame was the end of the pack."""

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """The frames that this chunk completes. Consume all of them before the next chunk."""
        self._received += chunk
        at = 0
        try:
            while self._complete(at):
                header, begin = self._header or {}, at + self._content_at
                at = begin + header["bytes"]
                with memoryview(self._received) as view:
                    content = view[begin:at].tobytes()
                self._header = None
                self.ended = header.get("end") is True
                yield header, content
        finally:
            del self._received[:at]

    def close(self) -> None:
        """Say that no more bytes come. Raises `CutOff` if the pack has no end yet."""
        if not self.ended:
            raise CutOff

    def _complete(self, at: int) -> bool:
        """Whether the frame that begins at `at` was received completely."""
        received = len(self._received) - at
        if self.ended and received:
            raise BadPack("there are bytes behind the end of the pack")
        if self._header is None:
            if received < _LENGTH:
                return False
            begin = at + _LENGTH
            length = int.from_bytes(self._received[at:begin], "big")
            if not 0 < length <= LONGEST_HEADER:
                raise BadPack(f"a header cannot have {length} bytes")
            if received < _LENGTH + length:
                return False
            self._header = self._checked(self._received[begin : begin + length])
            self._content_at = _LENGTH + length
        return received >= self._content_at + int(self._header["bytes"])

    def _checked(self, encoded: bytearray) -> dict[str, Any]:
        try:
            header = json.loads(encoded)
        except (ValueError, RecursionError):
            raise BadPack("a header is not JSON") from None
        size = header.get("bytes") if isinstance(header, dict) else None
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise BadPack("a header does not say how many bytes follow")
        if size > self._most:
            raise BadPack(f"a frame has {size} bytes of content; at most {self._most} are allowed")
        if header.get("end") is True and size:
            raise BadPack("the end of a pack has content")
        return dict(header)


async def frames(chunks: AsyncIterator[bytes], *, most_bytes: int) -> AsyncGenerator[Frame, None]:
    """The frames of a stream, the end frame too. Raises `BadPack`, and `CutOff` if the stream ends before the pack."""
    decoder = PackDecoder(most_bytes=most_bytes)
    async for chunk in chunks:
        for each in decoder.feed(chunk):
            yield each
    decoder.close()


class PackReader:
    """Iterates over the frames of a file, the end frame too. Raises what `frames` does."""

    def __init__(self, file: BinaryIO, *, most_bytes: int) -> None:
        self._file = file
        self._decoder = PackDecoder(most_bytes=most_bytes)

    def __iter__(self) -> Iterator[Frame]:
        while chunk := self._file.read(_CHUNK):
            yield from self._decoder.feed(chunk)
        self._decoder.close()
