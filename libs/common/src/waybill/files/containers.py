"""What lies inside the two containers Office files come in: the names in a ZIP, and in an OLE2 compound file.

Only directories are read, never contents, and only so much of them: a hostile file costs a few hundred
kilobytes. Anything odd ends the reading; whoever unpacks the file later will say what is wrong with it.
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
    # The end record is 22 bytes and a comment of up to 65,535.
    file.seek(max(0, size - 22 - 65_535))
    tail = file.read(22 + 65_535)
    end = _end_record(tail)
    if end is None:
        return
    length = int.from_bytes(tail[end + 12 : end + 16], "little")
    # Counted back from the end record, because data put before the ZIP shifts the offset it declares.
    start = size - len(tail) + end - length
    if start < 0:
        return
    file.seek(start)
    yield from _entries(file.read(min(length, _MOST_DIRECTORY)))


def _end_record(tail: bytes) -> int | None:
    """Where the end record starts: the last mark whose comment reaches to the end, as a comment may hold marks."""
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
    if shift not in (9, 12):  # sectors of 512 or 4096 bytes; the format knows no others
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
    """Where the directory goes on, by those 109 sectors of the allocation table that the header lists."""
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
