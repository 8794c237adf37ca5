"""A page as an image, turned as it was read, so that the boxes of a provenance fit onto it.

Written as PNG by ourselves, in a screenful of code, which saves an imaging library.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from math import sqrt

import pypdfium2

from waybill_documents.faults import DocumentFault, FaultCode
from waybill_documents.limits import Limits
from waybill_documents.pdf.words import turn_of

_EFFORT = 3
"""How hard zlib tries: beyond this, an image gets hardly smaller and takes much longer."""
_BAND = 256
"""Rows that are packed at a time: the image is in memory once, and not twice."""


@dataclass(frozen=True, slots=True)
class Image:
    """A page as it is read."""

    width: int
    height: int
    png: bytes


def page_image(document: pypdfium2.PdfDocument, number: int, scale: float, limits: Limits) -> bytes:
    """A page as PNG, `scale` pixels to a point: a box times the scale is where it stands.

    A page too large for that comes out smaller, whole: a box is then at the same share of the image's sides as of the
    page's. Raises `DocumentFault` when there is no such page, or it is damaged.
    """
    if not 1 <= number <= len(document):
        count = "1 page" if len(document) == 1 else f"{len(document):,} pages"
        message = f"The PDF has {count}; there is no page {number:,}."
        raise DocumentFault(FaultCode.NO_SUCH_PAGE, message)
    try:
        page = document[number - 1]
    except pypdfium2.PdfiumError as error:
        raise _damaged(number) from error
    try:
        wide, high = page.get_size()
        most = min(sqrt(limits.pixels / max(wide * high, 1)), limits.pixels_wide / max(wide, high, 1))
        return drawn(page, _turn(page), min(scale, most)).png
    except pypdfium2.PdfiumError as error:
        raise _damaged(number) from error
    finally:
        page.close()


def drawn(page: pypdfium2.PdfPage, turn: int, scale: float) -> Image:
    """The page as its text is read: `turn` is `Page.turn`."""
    # pdfium turns by the page's own rotation already.
    turn = (turn - page.get_rotation()) % 360
    bitmap = page.render(scale=scale, rotation=turn, rev_byteorder=True)
    try:
        return Image(bitmap.width, bitmap.height, _png(bitmap))
    finally:
        bitmap.close()


def _turn(page: pypdfium2.PdfPage) -> int:
    text_page = page.get_textpage()
    try:
        return turn_of(page, text_page)
    finally:
        text_page.close()


def _damaged(number: int) -> DocumentFault:
    return DocumentFault(FaultCode.UNREADABLE, f"Page {number} of the PDF is damaged.")


def _png(bitmap: pypdfium2.PdfBitmap) -> bytes:
    """The bitmap's pixels, three bytes each, as an RGB image."""
    pixels = memoryview(bitmap.buffer).cast("B")
    stride, wide = bitmap.stride, 3 * bitmap.width
    packer = zlib.compressobj(_EFFORT)
    packed = b""
    for first in range(0, bitmap.height, _BAND):
        tops = range(first * stride, min(first + _BAND, bitmap.height) * stride, stride)
        packed += packer.compress(b"".join([b"\0" + pixels[top : top + wide] for top in tops]))
    packed += packer.flush()
    head = struct.pack(">IIBBBBB", bitmap.width, bitmap.height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", packed), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
