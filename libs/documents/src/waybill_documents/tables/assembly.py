"""Assembles the lines of a table into rows.

A line begins a row, continues the row above or, if the anchor is in the middle of a row, belongs to the nearer row.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.geometry import Word
from waybill_documents.messages import DocumentMessage
from waybill_documents.text_lines import Line

NEXT_LINE = 1.2
"""A line continues the row above it when the gap between them is at most this many heights."""
_SAME_SIZE = 1.7
"""A line continues a row only if neither is more than this many times as high. This excludes stamps."""
_WIDER = 0.08
"""A gap between two lines is wider than another when they differ by more than this many heights."""


@dataclass(slots=True)
class Piece:
    """The words of a cell in one line."""

    page: int
    words: list[Word]

    @property
    def text(self) -> str:
        """The words with one space between them."""
        return " ".join([word.text for word in self.words])


@dataclass(slots=True)
class RawRow:
    """A row before its texts are read: the pieces of each cell."""

    cells: dict[str, list[Piece]]
    doubtful: set[str] = field(default_factory=set)
    """Columns with a word that crosses an edge."""


class CellLine(NamedTuple):
    """A line of the table, divided into cells."""

    line: Line
    page: int
    cells: dict[str, Piece]
    doubtful: set[str]


class Assembly:
    """Assembles rows. Of a page it keeps only the last line of the current row."""

    def __init__(
        self, name: str, max_rows: int, wrapping: AbstractSet[str], anchor: Literal["first", "middle"]
    ) -> None:
        self.rows: list[RawRow] = []
        self._name = name
        self._max_rows = max_rows
        self._wrapping = wrapping
        self.centred = anchor == "middle"
        """Whether the numbers of a row are in the middle of its lines."""
        self._last: tuple[Line, int] | None = None
        self._lowest: float | None = None
        self._waiting: list[CellLine] = []

    def add(self, row: RawRow) -> None:
        """Add a complete row."""
        if len(self.rows) >= self._max_rows:
            raise DocumentRejected(
                FaultCode.TOO_MANY_ROWS, DocumentMessage("table.too_many_rows", table=self._name, most=self._max_rows)
            )
        self.rows.append(row)
        self._last = None

    def begin(self, given: CellLine) -> None:
        """Begin a row at this line, or with its anchor in this line."""
        above = self._divided(given)
        self.add(RawRow({}))
        for each in (*above, given):
            self._append(each)
        self._last = given.line, given.page
        self._lowest = _reach(given.line, above[0].line if above else given.line)

    def go_on(self, given: CellLine, near: bool) -> bool:
        """Take the line if it continues the row above, or may belong to the row below. Returns whether it was taken.

        `near` says that there is nothing between the row above and this line. Only cells that wrap are taken. The row
        above must have the other cells too; the caller reports them as unread.
        """
        texts = {name: piece for name, piece in given.cells.items() if name in self._wrapping}
        if len(texts) < len(given.cells):
            if not self.rows or not given.cells.keys() - texts.keys() <= self.rows[-1].cells.keys():
                return False
            given = given._replace(cells=texts)
        elif self.centred:
            self._waiting.append(given)
            return True
        if not near or not self.rows or not self._follows(given):
            return False
        self._append(given)
        self._last = given.line, given.page
        return True

    def end_page(self) -> list[CellLine]:
        """The page ends: waiting lines cannot belong to a row below any more. Returns those that belong to no row."""
        waiting, self._waiting = self._waiting, []
        for number, each in enumerate(waiting):
            is_below = self._lowest is not None and _middle(each.line) > self._lowest
            if is_below or self._last is None or self._last[1] != each.page or not self._follows(each):
                return waiting[number:]
            self._append(each)
            self._last = each.line, each.page
        return []

    def is_close(self, given: CellLine) -> bool:
        """Whether a line is right below the last line of a row."""
        return self._last is not None and self._last[1] == given.page and self._follows(given)

    def _follows(self, given: CellLine) -> bool:
        if self._last is None:
            return False
        last, page = self._last
        small, tall = sorted((given.line.height, last.height))
        if tall > _SAME_SIZE * small:
            return False
        return page != given.page or given.line.top - last.bottom <= NEXT_LINE * small

    def _divided(self, anchor: CellLine) -> list[CellLine]:
        """Divide the waiting lines between the last row and the new one. Returns those of the new one.

        They are divided at the widest gap, or so that the last row has as many below its numbers as above them.
        """
        waiting, self._waiting = self._waiting, []
        if not waiting or self._last is None or self._last[1] != anchor.page:
            return waiting
        above = self._last[0]
        widest = widest_gap([above, *(each.line for each in waiting), anchor.line])
        if widest is not None:
            mine = widest
        elif self._lowest is not None:
            mine = sum(_middle(each.line) <= self._lowest for each in waiting)
        else:
            mine = sum(each.line.top - above.top <= anchor.line.top - each.line.top for each in waiting)
        for each in waiting[:mine]:
            self._append(each)
        return waiting[mine:]

    def _append(self, given: CellLine) -> None:
        row = self.rows[-1]
        for name, piece in given.cells.items():
            row.cells.setdefault(name, []).append(piece)
        row.doubtful |= given.doubtful


def widest_gap(chain: Sequence[Line]) -> int | None:
    """Which of the gaps between these lines is wider than all others; None if no gap is."""
    gaps = [lower.top - upper.bottom for upper, lower in pairwise(chain)]
    widest = max(range(len(gaps)), key=gaps.__getitem__)
    least = gaps[widest] - _WIDER * chain[0].height
    return widest if all(gap < least for at, gap in enumerate(gaps) if at != widest) else None


def _reach(anchor: Line, top: Line) -> float:
    """The middle of the lowest line of a row, if it has as much below its numbers as above them."""
    return 2 * _middle(anchor) - _middle(top) + 0.4 * anchor.height


def _middle(line: Line) -> float:
    return (line.top + line.bottom) / 2
