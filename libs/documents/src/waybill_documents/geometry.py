"""Words with boxes, pages, and places on them. Every later stage works on words; provenance points to places.

Coordinates are points from the top left corner of the page, turned until its text is upright. Only geometry uses
floats; amounts never do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Box = tuple[float, float, float, float]
"""left, top, right, bottom"""


class Word(NamedTuple):
    """A run of characters without white space. A tuple, because an invoice has ten thousand of them."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class SheetGrid:
    """Where the cells of a sheet are on the page that it is laid out on."""

    number: int
    """Its number in the workbook, hidden sheets included."""
    name: str | None
    """None for a CSV file, which has only one sheet."""
    lefts: tuple[float, ...]
    """The left edge of each column; the last one is the right edge of the sheet."""
    tops: tuple[float, ...]
    """The upper edge of each row; the last one is the lower edge of the sheet."""
    first: tuple[int, int] = (0, 0)
    """Row and column of the first cell, counted from 0."""

    def points(self, cells: Box) -> Box:
        """Where these cells are on the page, given in columns and rows. Cells outside of the sheet have no size."""
        down, across = self.first
        columns, rows = len(self.lefts) - 1, len(self.tops) - 1
        left, right = (min(max(int(side) - across, 0), columns) for side in (cells[0], cells[2]))
        top, bottom = (min(max(int(side) - down, 0), rows) for side in (cells[1], cells[3]))
        return self.lefts[left], self.tops[top], self.lefts[right], self.tops[bottom]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a document, its words in the order of the file."""

    number: int
    width: float
    height: float
    turn: int
    """Degrees, clockwise, by which the page must be turned for its text to be upright; an image of it needs them."""
    words: tuple[Word, ...]
    askew: tuple[Word, ...] = ()
    """Words in another direction than the page's text, such as watermarks and margin notes. They are in no line."""
    recognised: bool = False
    """Whether its words are invisible, like the text that OCR adds to a scan."""
    sheet: SheetGrid | None = None
    """The cells, if it is a sheet of a workbook or a CSV file."""


class Place(NamedTuple):
    """A box on a page, or cells of a sheet. A tuple, because every value has one."""

    page: int
    """The page, or the number of the sheet."""
    box: Box
    """In points; for cells, in columns and rows: B3 is (1, 2, 2, 3)."""
    cell: str | None = None
    """The name of the cells, as in `Sheet1!C7`; None on a page."""


def around(words: Sequence[Word]) -> Box:
    """The smallest box that holds all the words."""
    _, left, top, right, bottom = words[0]
    for _, word_left, word_top, word_right, word_bottom in words:  # a cell has few words: faster than `min` and `max`
        if word_left < left:
            left = word_left
        if word_top < top:
            top = word_top
        if word_right > right:
            right = word_right
        if word_bottom > bottom:
            bottom = word_bottom
    return left, top, right, bottom


def cut(words: Sequence[Word], start: int, end: int) -> list[Word]:
    """The part of a line's words between two positions of its text."""
    taken: list[Word] = []
    position = 0
    for word in words:
        first, last = max(start - position, 0), min(end - position, len(word.text))
        if first < last:
            taken.append(part(word, first, last))
        position += len(word.text) + 1
    return taken


def part(word: Word, start: int, end: int) -> Word:
    """Some characters of a word. Their place is estimated from their number."""
    if start == 0 and end == len(word.text):
        return word
    wide = (word.right - word.left) / len(word.text)
    return Word(
        word.text[start:end],
        round(word.left + start * wide, 2),
        word.top,
        round(word.left + end * wide, 2),
        word.bottom,
    )
