"""Unpacks one member into a file, counting every byte, whatever its header says about its size."""

from __future__ import annotations

import bz2
import hashlib
import io
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from waybill_documents.archives.archive_limits import RATIO_MATTERS_FROM, ArchiveLimits, UnpackBudget
from waybill_documents.archives.directory import ZipEntry
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage

Scratch = Callable[[], BinaryIO]
"""Makes an empty file for the content of a member that is not small."""

_STEP = 256 * 1024
"""Bytes that are unpacked at once."""
_PACKED = 64 * 1024
"""Bytes that are read at once: few enough that nearly always all of them are unpacked at once."""
_IN_MEMORY = 4 * 2**20
"""Bytes of a member that are kept in memory."""
_LOCAL = struct.Struct("<4s5H3L2H")
_STORED, _DEFLATED, _BZIP2, _LZMA = 0, 8, 12, 14
_LZMA_HEADER = struct.Struct("<2xHBL")
_LARGEST_DICTIONARY = 64 * 2**20
"""Of LZMA, which allocates what a header claims."""


@dataclass(slots=True)
class Content:
    """What a member contains."""

    file: BinaryIO
    size: int = 0
    sha256: str = ""


def unpack(file: BinaryIO, entry: ZipEntry, scratch: Scratch, limits: ArchiveLimits, budget: UnpackBudget) -> Content:
    """Unpack a member, into memory if it is small. Raises `DocumentRejected` for what is wrong with it."""
    if entry.method not in (_STORED, _DEFLATED, _BZIP2, _LZMA):
        raise _refused(DocumentMessage("member.method", method=entry.method))
    if entry.size > limits.file_bytes:
        raise _too_large(limits)
    _go_to_content(file, entry)
    content = Content(io.BytesIO())
    try:
        _fill(content, _unpacked(_packed(file, entry.packed), entry.method), entry, scratch, limits, budget)
    except (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError) as error:
        content.file.close()
        if isinstance(error, OSError) and error.errno is not None:
            raise  # that was not bzip2
        raise _refused(DocumentMessage("member.damaged")) from error
    except BaseException:
        content.file.close()
        raise
    content.file.seek(0)
    return content


def _fill(
    content: Content,
    pieces: Iterator[bytes],
    entry: ZipEntry,
    scratch: Scratch,
    limits: ArchiveLimits,
    budget: UnpackBudget,
) -> None:
    size, crc, sha256 = 0, 0, hashlib.sha256()
    for piece in pieces:
        size += len(piece)
        budget.spend(len(piece))
        _check_size(size, entry.packed, limits)
        crc = zlib.crc32(piece, crc)
        sha256.update(piece)
        if size == len(piece):
            content.file = io.BytesIO(piece)  # most files are a single piece, which is not copied
            content.file.seek(size)
            continue
        if size > _IN_MEMORY >= size - len(piece):
            small, content.file = content.file, scratch()
            small.seek(0)
            content.file.write(small.read())
        content.file.write(piece)
    if (size, crc) != (entry.size, entry.crc):
        raise _refused(DocumentMessage("member.damaged"))
    content.size, content.sha256 = size, sha256.hexdigest()


def _go_to_content(file: BinaryIO, entry: ZipEntry) -> None:
    """Read the member's own header, and check that its bytes end before the next member begins."""
    if entry.ceiling == 0:
        raise _refused(DocumentMessage("member.overlaps"))
    if entry.offset >= entry.ceiling:
        raise _refused(DocumentMessage("member.damaged"))
    file.seek(entry.offset)
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or header[:4] != b"PK\x03\x04":
        raise _refused(DocumentMessage("member.damaged"))
    *_, name, extra = _LOCAL.unpack(header)
    begin = entry.offset + _LOCAL.size + name + extra
    if begin + entry.packed > entry.ceiling:
        raise _refused(DocumentMessage("member.overlaps"))
    file.seek(begin)


def _packed(file: BinaryIO, left: int) -> Iterator[bytes]:
    while left:
        chunk = file.read(min(left, _PACKED))
        if not chunk:
            return  # its size shows that something is missing
        left -= len(chunk)
        yield chunk


def _unpacked(packed: Iterator[bytes], method: int) -> Iterator[bytes]:
    if method == _STORED:
        return packed
    if method == _DEFLATED:
        return _inflated(packed)
    if method == _BZIP2:
        return _decompressed(packed, bz2.BZ2Decompressor())
    return _from_lzma(packed)


def _inflated(packed: Iterator[bytes]) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    for chunk in packed:
        more = True
        while more and not inflater.eof:
            piece = inflater.decompress(chunk, _STEP)
            chunk = inflater.unconsumed_tail
            more = bool(chunk) or len(piece) == _STEP
            if piece:
                yield piece


def _from_lzma(packed: Iterator[bytes]) -> Iterator[bytes]:
    first = next(packed, b"")
    if len(first) < _LZMA_HEADER.size:
        raise EOFError
    length, properties, dictionary = _LZMA_HEADER.unpack_from(first)
    if length != 5 or properties >= 9 * 5 * 5 or dictionary > _LARGEST_DICTIONARY:
        raise _refused(DocumentMessage("member.method", method=_LZMA))
    rest, lc = divmod(properties, 9)
    pb, lp = divmod(rest, 5)
    settings = {"id": lzma.FILTER_LZMA1, "dict_size": max(dictionary, 4096), "lc": lc, "lp": lp, "pb": pb}

    def content() -> Iterator[bytes]:
        yield first[_LZMA_HEADER.size :]
        yield from packed

    yield from _decompressed(content(), lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[settings]))


def _decompressed(
    packed: Iterator[bytes], decompressor: bz2.BZ2Decompressor | lzma.LZMADecompressor
) -> Iterator[bytes]:
    for chunk in packed:
        while not decompressor.eof:
            piece = decompressor.decompress(chunk, _STEP)
            chunk = b""
            if piece:
                yield piece
            if decompressor.needs_input:
                break


def _check_size(size: int, packed: int, limits: ArchiveLimits) -> None:
    if size > limits.file_bytes:
        raise _too_large(limits)
    if size > RATIO_MATTERS_FROM and size > limits.ratio * packed:
        raise DocumentRejected(FaultCode.TOO_LARGE, DocumentMessage("member.unpacks_too_far", times=limits.ratio))


def _too_large(limits: ArchiveLimits) -> DocumentRejected:
    says = DocumentMessage("member.too_large", megabytes=limits.file_bytes // 2**20)
    return DocumentRejected(FaultCode.TOO_LARGE, says)


def _refused(says: DocumentMessage) -> DocumentRejected:
    return DocumentRejected(FaultCode.UNREADABLE, says)
