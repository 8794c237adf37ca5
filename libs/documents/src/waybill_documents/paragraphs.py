"""Running text: the lines of a page that follow one another like the lines of a paragraph, joined to one text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from waybill_documents.geometry import Word, cut
from waybill_documents.text_lines import Line, Lines

_LINE_GAP = 1.2
"""Two lines belong to one paragraph when the gap between them is at most this many heights."""
_SAME_SIZE = 1.3
"""And when neither is more than this many times as high as the other, like a title above a text."""
_MOST_LINES = 200
"""The most lines of one paragraph. More of them occur only in hostile documents."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """The words of each line, and how the lines are joined."""

    rows: Sequence[Sequence[Word]]
    join: str

    @property
    def text(self) -> str:
        """The whole text."""
        return self.join.join(_text(row) for row in self.rows)

    def parts(self, start: int, end: int) -> list[list[Word]]:
        """The words between two positions of the text, line by line."""
        found: list[list[Word]] = []
        position = 0
        for row in self.rows:
            words = cut(row, max(start - position, 0), max(end - position, 0))
            if words:
                found.append(words)
            position += len(_text(row)) + len(self.join)
        return found


def paragraphs(lines: Lines, join: str) -> list[Paragraph]:
    """The paragraphs of a page, in the order in which they begin. Columns of text beside each other are separate."""
    found: list[list[Sequence[Word]]] = []
    open_ones: list[list[Sequence[Word]]] = []  # from left to right, as the segments of a line are
    for number, line in enumerate(lines):
        going_on: list[list[Sequence[Word]]] = []
        at = 0
        for words in lines.segments(number):
            while at < len(open_ones) and open_ones[at][-1][-1].right <= words[0].left:
                at += 1
            above = open_ones[at] if at < len(open_ones) else None
            if above is not None and len(above) < _MOST_LINES and _follows(above[-1], words):
                above.append(words)
                going_on.append(above)
                at += 1
            else:
                going_on.append([words])
                found.append(going_on[-1])
        joined = {id(rows) for rows in going_on}
        waiting = [rows for rows in open_ones if id(rows) not in joined and _is_near(rows[-1], line)]
        open_ones = sorted([*waiting, *going_on], key=lambda rows: rows[-1][0].left)
    return [Paragraph(rows, join) for rows in found]


def _follows(above: Sequence[Word], words: Sequence[Word]) -> bool:
    """Whether the words are the next line of a paragraph that ends with the words above."""
    upper, lower = above[0].bottom - above[0].top, words[0].bottom - words[0].top
    small, tall = sorted((upper, lower))
    gap = words[0].top - above[0].bottom
    return (
        above[0].left < words[-1].right
        and words[0].left < above[-1].right
        and -small / 2 < gap <= _LINE_GAP * small
        and tall <= _SAME_SIZE * small
    )


def _is_near(above: Sequence[Word], line: Line) -> bool:
    """Whether the next line of a paragraph can still come. A line of another column may be slightly higher."""
    return line.top - above[0].bottom < 0


def _text(row: Sequence[Word]) -> str:
    return " ".join([word.text for word in row])
