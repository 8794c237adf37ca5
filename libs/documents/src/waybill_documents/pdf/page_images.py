"""Pages as PNG images, turned the way they are read, so that the boxes of the provenance fit onto them.

We write the PNG ourselves. It takes one screen of code and saves an imaging library.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import sqrt

import pypdfium2

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.letters import Letters
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.word_reader import turn_of

_EFFORT = 3
"""zlib's level. Higher ones hardly make an image smaller and take much longer."""
_BAND = 256
"""Rows compressed at a time, so that the image is in memory only once."""


_LONGEST_SIDE = 1_400
"""Pixels that a page image has at most when no scale is asked for, whatever size the page claims."""
_USUAL_SCALE = 1.8
"""Pixels per point: 130 dpi, which is sharp enough to read and makes a tenth of a megabyte."""


@dataclass(frozen=True, slots=True)
class PageImage:
    """A page turned until its text is upright."""

    page: int
    width: int
    height: int
    png: bytes


def page_image(document: pypdfium2.PdfDocument, number: int, scale: float, limits: PdfLimits) -> bytes:
    """A page as PNG with `scale` pixels per point: a box times the scale gives its pixels.

    A page that would become too large is drawn smaller. A box then has the same share of the image's sides as of the
    page's. Raises `DocumentRejected` when there is no such page, or it is damaged.
    """
    if not 1 <= number <= len(document):
        raise DocumentRejected(
            FaultCode.NO_SUCH_PAGE, DocumentMessage("pdf.no_such_page", count=len(document), page=number)
        )
    try:
        page = document[number - 1]
    except pypdfium2.PdfiumError as error:
        raise _damaged(number) from error
    try:
        wide, high = page.get_size()
        most = min(sqrt(limits.pixels / max(wide * high, 1)), limits.pixels_wide / max(wide, high, 1))
        return _drawn(page, number, _turn(page), min(scale, most)).png
    except pypdfium2.PdfiumError as error:
        raise _damaged(number) from error
    finally:
        page.close()


def page_images(document: pypdfium2.PdfDocument, turns: dict[int, int], wanted: Collection[int]) -> Iterator[PageImage]:
    """The wanted pages, in order, at a size for the screen. `turns` has each page's `Page.turn`."""
    for number in sorted(wanted):
        page = document[number - 1]
        try:
            scale = min(_USUAL_SCALE, _LONGEST_SIDE / max(*page.get_size(), 1))
            yield _drawn(page, number, turns.get(number, page.get_rotation()), scale)
        finally:
            page.close()


def _drawn(page: pypdfium2.PdfPage, number: int, turn: int, scale: float) -> PageImage:
    # pdfium turns by the page's own rotation already.
    turn = (turn - page.get_rotation()) % 360
    bitmap = page.render(scale=scale, rotation=turn, rev_byteorder=True)
    try:
        return PageImage(number, bitmap.width, bitmap.height, _png(bitmap))
    finally:
        bitmap.close()


def _turn(page: pypdfium2.PdfPage) -> int:
    text_page = page.get_textpage()
    try:
        return turn_of(page, Letters(text_page.raw))
    finally:
        text_page.close()


def _damaged(number: int) -> DocumentRejected:
    return DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("pdf.page_damaged", page=number))


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
