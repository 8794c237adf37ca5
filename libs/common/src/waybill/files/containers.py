"""Lists the names inside the two containers of Office files: ZIP files and OLE2 compound files.

It reads a limited part of the directory and no contents, so a hostile file costs a few hundred kilobytes. Anything odd
ends the listing; whoever unpacks the file later reports what is wrong with it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

_MOST_DIRECTORY = 256 * 1024
_MOST_SECTORS = 64


def zip_names(file: BinaryIO) -> Iterator[str]:
    """The first names in a ZIP's central directory."""
    size = file.seek(0, 2)
    # The end record has 22 bytes and a comment of up to 65,535.
    file.seek(max(0, size - 22 - 65_535))
    tail = file.read(22 + 65_535)
    end = _end_record(tail)
    if end is None:
        return
    length = int.from_bytes(tail[end + 12 : end + 16], "little")
    # We count back from the end record, because data before the ZIP shifts the offset it declares.
    start = size - len(tail) + end - length
    if start < 0:
        return
    file.seek(start)
    yield from _entries(file.read(min(length, _MOST_DIRECTORY)))


def leading_names(head: bytes) -> Iterator[str]:
    """The names in front of a ZIP's first files, for a ZIP that lost its directory."""
    at = 0
    while (at := head.find(b"PK\x03\x04", at)) >= 0 and at + 30 <= len(head):
        (name,) = struct.unpack_from("<H", head, at + 26)
        yield head[at + 30 : at + 30 + name].decode("utf-8", "replace")
        at += 30 + name


def _end_record(tail: bytes) -> int | None:
    """Where the end record starts. A comment may contain its signature, so the comment must reach to the end."""
    at = len(tail)
    while (at := tail.rfind(b"PK\x05\x06", 0, at)) >= 0:
        if at + 22 + int.from_bytes(tail[at + 20 : at + 22], "little") == len(tail):
            return at
    return None


def _entries(directory: bytes) -> Iterator[str]:
    at = 0
    while directory[at : at + 4] == b"PK\x01\x02" and at + 46 <= len(directory):
        name, extra, comment = struct.unpack_from("<HHH", directory, at + 28)
        yield directory[at + 46 : at + 46 + name].decode("utf-8", "replace")
        at += 46 + name + extra + comment


def ole2_names(file: BinaryIO) -> Iterator[str]:
    """The first names of streams in an OLE2 compound file."""
    file.seek(0)
    header = file.read(512)
    if len(header) < 512:
        return
    shift = int.from_bytes(header[30:32], "little")
    if shift not in (9, 12):  # the format only has sectors of 512 or 4096 bytes
        return
    sector_size = 1 << shift
    sector = int.from_bytes(header[48:52], "little")
    for _ in range(_MOST_SECTORS):
        file.seek((sector + 1) * sector_size)
        content = file.read(sector_size)
        yield from _stream_names(content)
        following = _next_sector(file, header, sector, sector_size)
        if following is None or len(content) < sector_size:
            return
        sector = following


def _stream_names(sector: bytes) -> Iterator[str]:
    for at in range(0, len(sector) - 127, 128):
        length = int.from_bytes(sector[at + 64 : at + 66], "little")
        if 2 <= length <= 64:
            yield sector[at : at + length - 2].decode("utf-16-le", "replace")


def _next_sector(file: BinaryIO, header: bytes, sector: int, sector_size: int) -> int | None:
    """The directory's next sector, from the 109 sectors of the allocation table that the header lists."""
    per_sector = sector_size // 4
    index, place = divmod(sector, per_sector)
    if index >= 109:
        return None
    table = int.from_bytes(header[76 + 4 * index : 80 + 4 * index], "little")
    if table >= 0xFFFFFFFA:
        return None
    file.seek((table + 1) * sector_size + 4 * place)
    entry = file.read(4)
    following = int.from_bytes(entry, "little")
    return following if len(entry) == 4 and following < 0xFFFFFFFA else None
