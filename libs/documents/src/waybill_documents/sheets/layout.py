"""Lays a sheet out as a page, so that fields and tables are found by the same code as in a PDF.

Each row of the sheet is one line of the page, or several if a cell has line breaks. Columns are as wide as their
longest text, with a wide gap between them. Merged cells reach over all columns that they cover.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.geometry import Page, SheetGrid, Word
from waybill_documents.locales import LocaleRules
from waybill_documents.messages import DocumentMessage
from waybill_documents.sheets.sheet_reader import Sheet
from waybill_documents.sheets.typed_cells import is_typed, printed

MOST_WORDS = 400_000
"""Words of all sheets. A table of 20,000 rows has about that many."""

_LETTER, _HEIGHT, _LEADING = 5.0, 10.0, 12.0
_GAP = 25.0
"""Between two columns. `text_lines` calls a gap wide if it is more than 1.8 heights."""


@dataclass(frozen=True, slots=True)
class LaidOutSheet:
    """A sheet as a page, and what its cells contain."""

    page: Page
    grid: SheetGrid
    cells: Sequence[Sequence[Any]]
    covers: Mapping[tuple[int, int], tuple[int, int]]
    """For the first cell of merged ones, the last row and column."""


def laid_out(sheet: Sheet, page: int, locale: LocaleRules, words_left: int) -> LaidOutSheet:
    """The sheet as the page with this number. `words_left` bounds how many words it may have."""
    covers = {first: last for first, last in sheet.merged if first != last and first[0] < len(sheet.cells)}
    texts = _texts(sheet, locale, words_left)
    widths = _widths(texts, covers)
    lefts = tuple(accumulate((width + _GAP for width in widths), initial=0.0))
    heights = [max((len(lines) for lines in row), default=1) or 1 for row in texts]
    tops = tuple(accumulate((height * _LEADING for height in heights), initial=0.0))
    grid = SheetGrid(sheet.number, sheet.name, lefts, tops, sheet.first)
    words: list[Word] = []
    for number, row in enumerate(texts):
        for column, lines in enumerate(row):
            if lines:
                last = covers.get((number, column))
                right = lefts[min(last[1], len(widths) - 1) + 1] - _GAP if last else None
                words += _words(lines, lefts[column], tops[number], right)
    return LaidOutSheet(Page(page, lefts[-1], tops[-1], 0, tuple(words), sheet=grid), grid, sheet.cells, covers)


def _texts(sheet: Sheet, locale: LocaleRules, words_left: int) -> list[list[list[list[str]]]]:
    """The words of each cell, line by line."""
    texts: list[list[list[list[str]]]] = []
    for row in sheet.cells:
        texts.append([])
        for cell in row:
            lines = _lines(cell, locale)
            texts[-1].append(lines)
            words_left -= sum(map(len, lines))
            if words_left < 0:
                raise DocumentRejected(
                    FaultCode.TOO_MUCH_TEXT, DocumentMessage("sheet.too_many_words", most=MOST_WORDS)
                )
    return texts


def _lines(cell: Any, locale: LocaleRules) -> list[list[str]]:
    """Without the empty lines."""
    if cell is None or cell == "":
        return []
    if is_typed(cell):
        return [printed(cell, locale).split()]
    return [words for line in cell.splitlines() if (words := line.split())]


def _widths(texts: Sequence[Sequence[list[list[str]]]], covers: Mapping[tuple[int, int], object]) -> list[float]:
    """The width of each column. A merged cell uses the columns it covers and makes none of them wider."""
    widths = [_LETTER] * max((len(row) for row in texts), default=0)
    for number, row in enumerate(texts):
        for column, lines in enumerate(row):
            if lines and (number, column) not in covers:
                longest = max(len(" ".join(words)) for words in lines)
                widths[column] = max(widths[column], longest * _LETTER)
    return widths


def _words(lines: Sequence[list[str]], left: float, top: float, right: float | None) -> Iterator[Word]:
    for number, words in enumerate(lines):
        above = top + number * _LEADING
        letter = _LETTER
        if right is not None:
            letter = min(_LETTER, (right - left) / len(" ".join(words)))
        at = left
        for position, text in enumerate(words):
            end = at + len(text) * letter
            if right is not None and position == len(words) - 1:
                end = max(end, right)
            yield Word(text, at, above, end, above + _HEIGHT)
            at = end + letter
