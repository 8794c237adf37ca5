"""Which row a line of the table goes to: the one it begins, the one above it, or, where the anchor stands in the
middle of a row, the one it is nearer to.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from waybill_documents.faults import DocumentFault, FaultCode
from waybill_documents.lines import Line
from waybill_documents.words import Word

NEXT_LINE = 1.2
"""A line goes on with the row above it when the white between them is at most this many heights."""
_SAME_SIZE = 1.7
"""And when neither is more than this many times as high as the other: a stamp across the table is no description."""


@dataclass(slots=True)
class Piece:
    """A cell's words in one line."""

    page: int
    words: list[Word]

    @property
    def text(self) -> str:
        """Them with one space between them."""
        return " ".join([word.text for word in self.words])


@dataclass(slots=True)
class RawRow:
    """A row before its texts are read: the pieces of each cell."""

    cells: dict[str, list[Piece]]
    doubtful: set[str] = field(default_factory=set)
    """Columns with a word that an edge runs through."""


class CellLine(NamedTuple):
    """A line of the table, divided into cells."""

    line: Line
    page: int
    cells: dict[str, Piece]
    doubtful: set[str]


class Assembly:
    """Puts lines together to rows. Of a page it keeps no more than the last line of the row it is at."""

    def __init__(
        self, name: str, max_rows: int, wrapping: AbstractSet[str], anchor: Literal["first", "middle"]
    ) -> None:
        self.rows: list[RawRow] = []
        self._name = name
        self._max_rows = max_rows
        self._wrapping = wrapping
        self._middle = anchor == "middle"
        self._last: tuple[Line, int] | None = None
        self._waiting: list[CellLine] = []

    def add(self, row: RawRow) -> None:
        """A row that is complete."""
        if len(self.rows) >= self._max_rows:
            raise DocumentFault(
                FaultCode.TOO_MANY_ROWS, f"The table '{self._name}' has more than {self._max_rows:,} rows."
            )
        self.rows.append(row)
        self._last = None

    def begin(self, given: CellLine) -> None:
        """A row begins at this line, or has its anchor in it."""
        above = self._divided(given)
        self.add(RawRow({}))
        for each in (*above, given):
            self._append(each)
        self._last = given.line, given.page

    def go_on(self, given: CellLine, near: bool) -> bool:
        """Whether the line is more text of the row above, or may be of the one below; then it is taken.

        `near` says that nothing else stands between the row above and this line. Of its cells only those that wrap are
        taken; the others must be ones that the row above has too, and the caller says that they are left.
        """
        texts = {name: piece for name, piece in given.cells.items() if name in self._wrapping}
        if len(texts) < len(given.cells):
            if not self.rows or not given.cells.keys() - texts.keys() <= self.rows[-1].cells.keys():
                return False
            given = given._replace(cells=texts)
        elif self._middle:
            self._waiting.append(given)
            return True
        if not near or not self.rows or not self._follows(given):
            return False
        self._append(given)
        self._last = given.line, given.page
        return True

    def end_page(self) -> None:
        """No line that waits has a row below it any more."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if self._last is None or self._last[1] != each.page or not self._follows(each):
                return
            self._append(each)
            self._last = each.line, each.page

    def is_close(self, given: CellLine) -> bool:
        """Whether a line stands right below the last one of a row."""
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
        """Give what waits to the row above. Returns what is the new row's: below the widest white, or nearer to it."""
        waiting, self._waiting = self._waiting, []
        if not waiting or self._last is None or self._last[1] != anchor.page:
            return waiting
        above = self._last[0]
        chain = [above, *(each.line for each in waiting), anchor.line]
        whites = [lower.top - upper.bottom for upper, lower in pairwise(chain)]
        widest = max(range(len(whites)), key=whites.__getitem__)
        if all(whites[widest] - white > 0.1 * above.height for at, white in enumerate(whites) if at != widest):
            mine = widest
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
