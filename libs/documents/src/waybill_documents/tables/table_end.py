"""Decides where a table ends. A description may contain the words of the end, even at the beginning of a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from waybill_documents.tables.assembly import NEXT_LINE, CellLine
from waybill_documents.tables.cells import Division
from waybill_documents.tables.grid import Grid
from waybill_documents.tables.grids import Grids
from waybill_documents.tables.header import Header
from waybill_documents.tables.row_shape import RowShape
from waybill_documents.tables.spanning_lines import LinesApart
from waybill_documents.text_lines import Line

_MOST_GRIDS = 10
"""How many lines that look like the end of the table are examined with their own grid; later ones share the last."""
_SAME_EDGE = 0.5
"""The lines of one text begin at most this many heights apart."""


class FoundEnd(NamedTuple):
    """The first line that is not part of the table any more."""

    number: int
    certain: bool
    """Whether it cannot be the next line of a description. Only the next page tells if it is not certain."""


class TableEnd:
    """Finds the line before which a table ends."""

    def __init__(self, phrases: tuple[str, ...], shape: RowShape, grids: Grids, apart: LinesApart) -> None:
        self._phrases = phrases
        self._shape = shape
        self._grids = grids
        self._apart = apart

    def among(self, body: Sequence[Line]) -> FoundEnd | None:
        """The end of a table whose rows match a pattern."""
        for number, line in enumerate(body):
            if line.has_part_with(self._phrases):
                return FoundEnd(number, True)
        return None

    def below(self, header: Header | None, known: Grid | None, body: Sequence[Line], page: int) -> FoundEnd | None:
        """The end of a table with columns."""
        tried = 0
        for number, line in enumerate(body):
            if not line.has_part_with(self._phrases):
                continue
            grid = known
            if header is not None and (grid is None or not grid.fits(header)):
                grid = self._grids.grid(header, [each.words for each in body[:number]])
                tried += 1
                known = grid if tried == _MOST_GRIDS else known
            if grid is None:
                return FoundEnd(number, True)
            division = Division(grid, self._shape.required, self._shape.numeric, self._shape.is_readable)
            given = division.divided(line, page)
            if not line.begins_with(self._phrases) and self._shape.begins(given.cells):
                continue
            if number == 0 or not self._may_be_text(given, division.divided(body[number - 1], page)):
                return FoundEnd(number, True)
            if not self._goes_on(body[number + 1 :], division, page):
                return FoundEnd(number, False)
        return None

    def resumes(self, body: Sequence[Line], grid: Grid, page: int) -> bool:
        """Whether the table goes on with a complete row on the page after an uncertain end."""
        division = Division(grid, self._shape.required, self._shape.numeric, self._shape.is_readable)
        return any(
            self._shape.is_complete(division.divided(line, page).cells) and not line.begins_with(self._phrases)
            for line in body
        )

    def _may_be_text(self, given: CellLine, above: CellLine) -> bool:
        """Whether a line can be the next one of the description above it, by what it has and where it stands."""
        if not self._shape.is_text(given.cells):
            return False
        if given.line.top - above.line.bottom > NEXT_LINE * min(given.line.height, above.line.height):
            return False
        return all(
            column in above.cells
            and abs(piece.words[0].left - above.cells[column].words[0].left) <= _SAME_EDGE * given.line.height
            for column, piece in given.cells.items()
        )

    def _goes_on(self, rest: Sequence[Line], division: Division, page: int) -> bool:
        """Whether a row, a carried sum or a certain end follows, so that a line above it is still in the table."""
        for line in rest:
            cells = division.divided(line, page).cells
            if self._shape.is_complete(cells) or self._apart.carries_out(line):
                return True
            if line.has_part_with(self._phrases) and not self._shape.is_text(cells):
                return True
        return False
