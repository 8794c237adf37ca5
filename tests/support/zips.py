"""Makes ZIPs: as usual programs write them, and as nobody ever should."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytes:
    """A ZIP as usual programs write it. Duplicate names are allowed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            archive.writestr(info, content)
        archive.comment = comment
    return buffer.getvalue()


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


@dataclass(frozen=True)
class RawMember:
    """A member of which everything can be chosen, true or not."""

    name: bytes
    packed: bytes
    """Its content, as it stands in the ZIP."""
    crc: int
    size: int
    method: int = 0
    flags: int = 0
    attributes: int = 0
    extra: bytes = b""
    packed_size: int | None = None
    """What the list says. None: the truth."""

    @classmethod
    def of(cls, name: bytes | str, content: bytes, *, method: int = 0) -> RawMember:
        raw = name.encode() if isinstance(name, str) else name
        return cls(raw, deflated(content) if method == 8 else content, zlib.crc32(content), len(content), method)

    def but(self, **changes: object) -> RawMember:
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def local(self) -> bytes:
        head = (b"PK\x03\x04", 20, self.flags, self.method, 0, 0, self.crc, len(self.packed), self.size)
        return struct.pack("<4s5H3L2H", *head, len(self.name), 0) + self.name + self.packed

    def listed(self, offset: int) -> bytes:
        packed = len(self.packed) if self.packed_size is None else self.packed_size
        made = (b"PK\x01\x02", 20, 3, 20, 0, self.flags, self.method, 0, 0, self.crc, packed, self.size)
        lengths = (len(self.name), len(self.extra), 0, 0, 0)
        return struct.pack("<4s4B4H3L5H2L", *made, *lengths, self.attributes, offset) + self.name + self.extra


def raw_zip(members: Sequence[RawMember], *, prefix: bytes = b"") -> bytes:
    """A ZIP of such members, one behind the other."""
    body, listed = b"", []
    for member in members:
        listed.append(member.listed(len(body)))
        body += member.local
    return prefix + with_list(body, listed)


def with_list(body: bytes, listed: Iterable[bytes], *, comment: bytes = b"") -> bytes:
    """A ZIP of anything and of a list that need not fit it."""
    entries = list(listed)
    directory, number = b"".join(entries), min(len(entries), 0xFFFF)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, number, number, len(directory), len(body), len(comment))
    return body + directory + end + comment


def many_tiny(count: int) -> bytes:
    """A ZIP with very many empty files, made faster than by writing each."""
    local = RawMember.of("a", b"").local
    entry = RawMember.of("a", b"").listed(0)
    body = local * count
    directory = bytearray(entry * count)
    for index in range(count):
        struct.pack_into("<L", directory, index * len(entry) + 42, index * len(local))
    at = len(body) + len(directory)
    end_64 = struct.pack(
        "<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(directory), len(body)
    ) + struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return body + bytes(directory) + end_64 + end
