"""Reads the list of files at the end of a ZIP, in bounded memory however long it is.

Python's `zipfile` makes an object for each entry before anybody can count them, and refuses the whole ZIP for one bad
name. This reader stops at the limit, and leaves what is wrong with a single entry to that entry.
"""

from __future__ import annotations

import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from waybill_documents.archives.member_names import MOST_NAME_BYTES, decoded
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage

_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_ENTRY = struct.Struct("<4s4B4H3L5H2L")
_LONGEST_COMMENT = 65_535
_CHUNK = 256 * 1024
_UNKNOWN_16, _UNKNOWN_32 = 0xFFFF, 0xFFFFFFFF
_FOLDER_OF_DOS = 0x10
_FOLDERS_PER_FILE = 4
"""A ZIP may have this many folders for each file that it may have; more are a reason to count them as files."""


@dataclass(slots=True)
class ZipEntry:
    """A member, as the list describes it. The sizes and the checksum are claims."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int
    """Where its own header begins."""
    kind: int
    """Its kind of file in Unix (`stat.S_IFMT`), or 0."""
    is_folder: bool
    ceiling: int = 0
    """Where its bytes must have ended: at the next member, or at the list. 0 if it shares its place with another."""

    @property
    def is_encrypted(self) -> bool:
        return bool(self.flags & 0x1)

    @property
    def is_special(self) -> bool:
        """Whether it is a link, a device or a pipe."""
        return self.kind not in (0, stat.S_IFREG, stat.S_IFDIR)


class TooManyEntries(Exception):
    """The list has more entries than the caller allows."""


def read_directory(file: BinaryIO, most: int) -> list[ZipEntry]:
    """The entries in the order of the list, of which at most `most` may be files.

    Raises `TooManyEntries`, or `DocumentRejected` if there is no list that can be read.
    """
    begin, end, shift = _extent(file)
    entries: list[ZipEntry] = []
    files = 0
    for entry in _entries(file, begin, end, shift):
        files += not entry.is_folder
        if files > most or len(entries) >= most * (1 + _FOLDERS_PER_FILE):
            raise TooManyEntries
        entries.append(entry)
    _set_ceilings(entries, begin)
    return entries


def _extent(file: BinaryIO) -> tuple[int, int, int]:
    """Where the list begins and ends, and how far all offsets are shifted by what precedes the ZIP."""
    size = file.seek(0, 2)
    first = max(0, size - _END.size - _LONGEST_COMMENT)
    file.seek(first)
    tail = file.read(size - first)
    at = _end_record(tail)
    if at is None:
        raise _refused(_without_end(file))
    _, disk, first_disk, _, count, length, offset, _ = _END.unpack_from(tail, at)
    end = first + at
    if (disk, first_disk) != (0, 0) and disk != _UNKNOWN_16:
        raise _refused(DocumentMessage("archive.split"))
    if _UNKNOWN_32 in (length, offset) or count == _UNKNOWN_16:
        found = _zip64(file, end)
        if found is not None:
            end, length, offset = found
    begin = end - length
    if begin < 0 or offset > begin:
        raise _refused(DocumentMessage("archive.damaged"))
    return begin, end, begin - offset


def _end_record(tail: bytes) -> int | None:
    """Where the last record begins whose comment reaches to the end; else the last one, if something was appended."""
    at, last = len(tail), None
    while (at := tail.rfind(b"PK\x05\x06", 0, at)) >= 0:
        if at + _END.size > len(tail):
            continue
        end = at + _END.size + int.from_bytes(tail[at + 20 : at + 22], "little")
        if end == len(tail):
            return at
        if last is None and end < len(tail):
            last = at
    return last


def _without_end(file: BinaryIO) -> DocumentMessage:
    file.seek(0)
    head = file.read(4)
    if head == b"PK\x07\x08":
        return DocumentMessage("archive.split")
    return DocumentMessage("archive.cut_off") if head == b"PK\x03\x04" else DocumentMessage("archive.no_zip")


def _zip64(file: BinaryIO, end: int) -> tuple[int, int, int] | None:
    """Where the list ends, its length and its offset, from the records for large ZIPs; None if there are none."""
    if end < _LOCATOR_64.size + _END_64.size:
        return None
    file.seek(end - _LOCATOR_64.size)
    signature, disk, _, disks = _LOCATOR_64.unpack(_exactly(file, _LOCATOR_64.size))
    if signature != b"PK\x06\x07":
        return None
    if disk or disks > 1:
        raise _refused(DocumentMessage("archive.split"))
    # It has no place for extensions here, like `zipfile`'s: nobody writes them.
    at = end - _LOCATOR_64.size - _END_64.size
    file.seek(at)
    signature, *_, length, offset = _END_64.unpack(_exactly(file, _END_64.size))
    if signature != b"PK\x06\x06":
        raise _refused(DocumentMessage("archive.damaged"))
    return at, length, offset


def _entries(file: BinaryIO, begin: int, end: int, shift: int) -> Iterator[ZipEntry]:
    """Parse the list, which is read in pieces."""
    file.seek(begin)
    read, at = b"", 0
    left = end - begin
    while left or at < len(read):
        if len(read) - at < _ENTRY.size + 3 * _UNKNOWN_16 and left:
            chunk = file.read(min(left, _CHUNK))
            if not chunk:
                raise _refused(DocumentMessage("archive.damaged"))
            left -= len(chunk)
            read, at = read[at:] + chunk, 0
            continue
        if len(read) - at < _ENTRY.size or read[at : at + 4] != b"PK\x01\x02":
            raise _refused(DocumentMessage("archive.damaged"))
        entry, at = _entry(read, at, shift)
        if at > len(read):
            raise _refused(DocumentMessage("archive.damaged"))
        yield entry


def _entry(read: bytes, at: int, shift: int) -> tuple[ZipEntry, int]:
    fields = _ENTRY.unpack_from(read, at)
    flags, method, crc, packed, size = fields[5], fields[6], fields[9], fields[10], fields[11]
    name_length, extra_length, comment_length = fields[12:15]
    attributes, offset = fields[17], fields[18]
    at += _ENTRY.size
    # A name that is too long is cut, but not below what makes it too long.
    raw = read[at : at + min(name_length, MOST_NAME_BYTES)]
    at += name_length
    if _UNKNOWN_32 in (size, packed, offset):
        size, packed, offset = _large(read[at : at + extra_length], size, packed, offset)
    name, kind = decoded(raw, flags), stat.S_IFMT(attributes >> 16)
    is_folder = raw[-1:] == b"/" or kind == stat.S_IFDIR or (bool(attributes & _FOLDER_OF_DOS) and not size)
    return (
        ZipEntry(name, flags, method, crc, packed, size, offset + shift, kind, is_folder),
        at + extra_length + comment_length,
    )


def _large(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """The numbers that need 64 bits. Those that are missing stay too large for any ZIP."""
    at = 0
    while at + 4 <= len(extra):
        identity, length = struct.unpack_from("<HH", extra, at)
        at += 4
        if identity == 1:
            values = iter(struct.unpack_from(f"<{min(length, len(extra) - at) // 8}Q", extra, at))
            size = next(values, size) if size == _UNKNOWN_32 else size
            packed = next(values, packed) if packed == _UNKNOWN_32 else packed
            offset = next(values, offset) if offset == _UNKNOWN_32 else offset
            break
        at += length
    return size, packed, offset


def _set_ceilings(entries: list[ZipEntry], end: int) -> None:
    """Find out up to where each member's bytes may reach, so that no two share any."""
    following = end
    ordered = sorted(entries, key=lambda entry: entry.offset, reverse=True)
    for index, entry in enumerate(ordered):
        neighbours = ordered[max(0, index - 1) : index] + ordered[index + 1 : index + 2]
        shared = any(each.offset == entry.offset for each in neighbours)
        entry.ceiling = 0 if shared else following
        following = min(following, entry.offset)


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise _refused(DocumentMessage("archive.damaged"))
    return data


def _refused(says: DocumentMessage) -> DocumentRejected:
    return DocumentRejected(FaultCode.UNREADABLE, says)
