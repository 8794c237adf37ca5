"""Page images are complete, limited in size, and turned so that the boxes of the provenance fit."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import pypdfium2
import pytest
from reportlab.pdfgen.canvas import Canvas

from support.invoices import print_invoice, reference_invoice
from support.pages import drawn, read_pages
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.geometry import Box
from waybill_documents.pdf.page_images import page_image
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened


@dataclass
class Pixels:
    width: int
    height: int
    rows: list[bytes]

    def dark(self, box: Box, scale: float) -> int:
        """The number of dark pixels in a box."""
        left, top, right, bottom = (round(side * scale) for side in box)
        rows = (row[3 * left : 3 * right] for row in self.rows[top:bottom])
        # Most rows are paper, and a page has millions of pixels.
        return sum(min(row[at : at + 3]) < 128 for row in rows if row.strip(b"\xff") for at in range(0, len(row), 3))


def decoded(png: bytes) -> Pixels:
    """Decode our own images: RGB, eight bits, unfiltered. Raises for a wrong checksum."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", png, at + 8 + size)[0] == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + size
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    content = zlib.decompress(chunks[b"IDAT"])
    stride = 3 * width + 1
    assert len(content) == stride * height
    return Pixels(width, height, [content[row * stride + 1 : (row + 1) * stride] for row in range(height)])


def image(path: Path, number: int = 1, scale: float = 1, limits: PdfLimits | None = None) -> Pixels:
    with opened(path, limits or PdfLimits()) as document:
        return decoded(page_image(document, number, scale, limits or PdfLimits()))


@pytest.mark.parametrize("scale", [1, 1.5, 2, 3, 4])
def test_a_page_has_as_many_pixels_as_its_points_times_the_scale(tmp_path: Path, scale: float) -> None:
    path = drawn(tmp_path / "page.pdf", lambda canvas: canvas.drawString(100, 742, "Hello"))
    made = image(path, scale=scale)
    assert made.width == pytest.approx(595 * scale, abs=1)
    assert made.height == pytest.approx(842 * scale, abs=1)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_boxes_fit_however_the_page_and_its_text_are_turned(tmp_path: Path, turn: int, rotation: int) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.translate(300, 400)
        canvas.rotate(turn)
        canvas.drawString(-80, 60, "Hello from here")
        canvas.setPageRotation(rotation)

    path = drawn(tmp_path / "page.pdf", draw)
    (page,) = read_pages(path)
    made = image(path, scale=2)
    assert made.width == pytest.approx(page.width * 2, abs=1)
    assert made.height == pytest.approx(page.height * 2, abs=1)
    boxes = [word[1:] for word in page.words]
    assert len(boxes) == 3
    inside = [made.dark(box, 2) for box in boxes]
    assert all(inside)
    # The letters are where the boxes are, and nothing is anywhere else.
    assert sum(inside) >= 0.95 * made.dark((0, 0, page.width, page.height), 2)


def test_what_is_read_from_an_invoice_is_printed_where_it_says(tmp_path: Path) -> None:
    path = tmp_path / "invoice.pdf"
    path.write_bytes(print_invoice(*reference_invoice(60)))
    pages = read_pages(path)
    made = image(path, number=2, scale=2)
    assert all(made.dark(word[1:], 2) for word in pages[1].words)


@pytest.mark.parametrize(("width", "height"), [(14_400, 14_400), (14_400, 3), (3, 14_400)])
def test_a_huge_page_comes_out_smaller_and_whole(tmp_path: Path, width: int, height: int) -> None:
    document = pypdfium2.PdfDocument.new()
    document.new_page(width, height)
    document.save(str(tmp_path / "huge.pdf"))
    document.close()
    limits = PdfLimits(pixels=1_000_000, pixels_wide=2_000)
    made = image(tmp_path / "huge.pdf", scale=4, limits=limits)
    assert made.width * made.height <= 1_010_000
    assert max(made.width, made.height) <= 2_000
    assert made.width >= made.height if width >= height else made.height > made.width


def test_a_page_that_is_not_there_is_said(tmp_path: Path) -> None:
    path = drawn(tmp_path / "page.pdf", lambda canvas: canvas.drawString(100, 742, "Hello"))
    for number in (-1, 0, 2, 10**9):
        with pytest.raises(DocumentRejected) as caught:
            image(path, number)
        assert caught.value.code is FaultCode.NO_SUCH_PAGE
    assert caught.value.message == "The PDF has 1 page; there is no page 1,000,000,000."


def test_a_page_without_text_is_drawn_as_it_is(tmp_path: Path) -> None:
    path = drawn(tmp_path / "page.pdf", lambda canvas: canvas.rect(100, 642, 100, 100, fill=1))
    made = image(path)
    assert made.dark((100, 100, 200, 200), 1) >= 9_900
    assert made.dark((0, 0, 99, 842), 1) == 0
