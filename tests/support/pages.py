"""Pages for tests of the extraction: made from words, drawn into a PDF, or read from one.

A word's letters are half as wide as they are high and its box is as high as its size, so that a test can
compute positions by counting letters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from reportlab.pdfgen.canvas import Canvas

from waybill_documents.extraction import Extraction, extract
from waybill_documents.geometry import Page, Word
from waybill_documents.mapping.model import Mapping
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.word_reader import pages
from waybill_documents.stages import Stages
from waybill_documents.text_lines import Line, Lines, lines_of

SIZE = 10.0
WIDTH, HEIGHT = 595.0, 842.0

Printed = tuple[float, float, str] | tuple[float, float, str, float]
"""Left, top, text and, if it is not SIZE, the size."""


def words_at(x: float, y: float, text: str, size: float = SIZE) -> Iterator[Word]:
    """The words of a string that starts at (x, y)."""
    for word in text.split(" "):
        wide = len(word) * size / 2
        if word:
            yield Word(word, round(x, 2), y, round(x + wide, 2), round(y + size, 2))
        x += wide + size / 2


def page(*strings: Printed, number: int = 1, width: float = WIDTH, height: float = HEIGHT) -> Page:
    words = [word for string in strings for word in words_at(*string)]
    return Page(number, width, height, 0, tuple(words))


def lines(*strings: Printed, number: int = 1) -> Lines:
    return lines_of(page(*strings, number=number))


def line(text: str, y: float = 0.0) -> Line:
    return lines((0, y, text)).lines[0]


def table(rows: Iterable[str], *, y: float = 100.0, leading: float = 12.0, x: float = 30.0) -> list[Printed]:
    """Lines as a typewriter prints them: columns are where they are in the test's text."""
    return [(x, y + number * leading, text) for number, text in enumerate(rows) if text.strip()]


def drawn(path: Path, *draw: Callable[[Canvas], None], size: tuple[float, float] = (WIDTH, HEIGHT)) -> Path:
    """A PDF with one page for each function that draws one."""
    canvas = Canvas(str(path), pagesize=size, invariant=1)
    for each in draw:
        canvas.setFont("Helvetica", SIZE)
        each(canvas)
        canvas.showPage()
    canvas.save()
    return path


def read_pages(path: Path, limits: PdfLimits | None = None) -> list[Page]:
    with opened(path, limits or PdfLimits()) as document:
        return list(pages(document, limits or PdfLimits()))


def extract_pages(mapping: Mapping, *given: Page) -> Extraction:
    return extract(given, len(given), mapping, Stages(time.perf_counter))


def extract_file(mapping: Mapping, path: Path) -> Extraction:
    with opened(path, PdfLimits()) as document:
        return extract(pages(document, PdfLimits()), len(document), mapping, Stages(time.perf_counter))
