"""Pictures of pages, for a person to see where the values stand: the boxes of a provenance fit onto them.

Written as PNG by ourselves, in a screenful of code, which saves an imaging library.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pypdfium2

_LONGEST_SIDE = 1_400
"""Pixels, at most, whatever size a page says it has."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A page as it is read, turned until its text is upright."""

    page: int
    width: int
    height: int
    png: bytes


def pictures(document: pypdfium2.PdfDocument, turns: dict[int, int], wanted: Collection[int]) -> Iterator[Picture]:
    """The wanted pages, in order. `turns` has each page's `Page.turn`."""
    for number in sorted(wanted):
        page = document[number - 1]
        try:
            wide, high = page.get_size()
            # Paper comes out at 130 dpi: sharp enough to read, and a tenth of a megabyte.
            scale = min(1.8, _LONGEST_SIDE / max(wide, high, 1))
            # pdfium turns by the page's own rotation already.
            turn = (turns.get(number, page.get_rotation()) - page.get_rotation()) % 360
            bitmap = page.render(scale=scale, rotation=turn, rev_byteorder=True, prefer_bgrx=True)
            try:
                yield Picture(number, bitmap.width, bitmap.height, _png(bitmap))
            finally:
                bitmap.close()
        finally:
            page.close()


def _png(bitmap: pypdfium2.PdfBitmap) -> bytes:
    """The bitmap's pixels, four bytes each of which the last says nothing, as an RGB image."""
    pixels = bytes(bitmap.buffer)
    rows = bytearray()
    for top in range(bitmap.height):
        row = pixels[top * bitmap.stride : top * bitmap.stride + 4 * bitmap.width]
        plain = bytearray(3 * bitmap.width)
        plain[0::3], plain[1::3], plain[2::3] = row[0::4], row[1::4], row[2::4]
        rows += b"\0" + plain
    head = struct.pack(">IIBBBBB", bitmap.width, bitmap.height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(rows), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
