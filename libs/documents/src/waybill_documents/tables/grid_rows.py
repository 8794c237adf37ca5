"""Reads the rows of a table by its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from waybill_documents.geometry import Place, around
from waybill_documents.tables.assembly import NEXT_LINE, Assembly, CellLine
from waybill_documents.tables.cells import Division
from waybill_documents.tables.grid import Grid
from waybill_documents.tables.header import Header
from waybill_documents.tables.row_shape import RowShape
from waybill_documents.tables.spanning_lines import LinesApart
from waybill_documents.tables.unread_lines import FieldLines, UnreadLine, UnreadLines
from waybill_documents.tables.vertical_centring import MarkedLine, judged
from waybill_documents.text_lines import Line

_TALL = 2.0
"""Lines this many times as high as the header are stamps and are ignored."""


@dataclass(frozen=True, slots=True)
class TablePart:
    """The part of a table on one page, besides its lines."""

    page: int
    grid: Grid
    header: Header | None
    """None if the header is not repeated on this page."""
    running: Mapping[int, int]
    """The numbers of lines that are repeated on neighbouring pages, and on how many."""
    spanning: Sequence[bool]
    """For each line, whether it looks like one across the columns."""
    is_first: bool
    """Whether the first header of the table is on this page."""
    is_last: bool


class GridRows:
    """Reads rows whose cells are in columns. `MatchingRows` reads those without."""

    def __init__(
        self, shape: RowShape, assembly: Assembly, apart: LinesApart, unread: UnreadLines, fields: FieldLines
    ) -> None:
        self._shape = shape
        self._assembly = assembly
        self._apart = apart
        self._unread = unread
        self._fields = fields
        self._under_header: list[str] = []
        self._tall = inf

    def measure(self, header: Line) -> None:
        """Note how high the text of the table is."""
        self._tall = _TALL * header.height

    def is_stamp(self, line: Line) -> bool:
        """Whether the line is too high for the table."""
        return line.height > self._tall and all(word.bottom - word.top > self._tall for word in line.words)

    def read(self, body: list[Line], part: TablePart) -> set[int]:
        """Read a page's rows. Returns the numbers of the lines that were used."""
        page, header, running = part.page, part.header, part.running
        division = Division(part.grid, self._shape.required, self._shape.numeric, self._shape.is_readable)
        divided = [division.divided(line, page) for line in body]
        start = 0 if header is not None else self._joins(divided)
        begins = [self._shape.begins(given.cells) for given in divided]
        numbers = range(len(divided) - 1, -1, -1)
        last_row = next((at for at in numbers if begins[at] and self._shape.is_complete(divided[at].cells)), -1)
        if any(self._apart.carries_out(line) for line in body[last_row + 1 :]):
            running = {}  # the page footer is below the carried sum
        if not self._assembly.centred:
            self._judge_centring(divided, begins, part, running)
        used: set[int] = set()
        near = bool(self._assembly.rows)  # the first lines of a page may continue a row of the previous page
        unread, apart, shape = self._unread, self._apart, self._shape
        bottom = max(box[3] for box in header.boxes.values()) if header is not None else None
        unread.begin_page(bottom)
        for number, given in enumerate(divided):
            line = given.line
            if number < start:
                if number not in running and shape.is_like_a_row(given.cells):
                    unread.add(line, page, len(self._assembly.rows), like_a_row=True)
                continue
            if self.is_stamp(line) or (header is not None and self._is_under_header(number, given, part)):
                continue
            spans = part.spanning[number]
            if spans and (apart.skips(line) or apart.takes_carry(line, page, "into")):
                used.add(number)
            elif spans and number > last_row and apart.takes_carry(line, page, "out"):
                used.add(number)
                unread.goes_on(len(self._assembly.rows))
                break
            elif spans and apart.takes_note(line, page):
                used.add(number)
            elif begins[number]:
                unread.goes_on(len(self._assembly.rows), line, bottom)
                self._assembly.begin(given)
                used.add(number)
                near = True
            elif number in running and not (near and running[number] == 1 and self._assembly.is_close(given)):
                # Two pages may end with the same product, so a footer close to a row must be on three pages.
                near = False
                continue
            elif self._goes_on(given, near):
                used.add(number)
            else:
                near = False
                self._not_understood(given)
                continue
            unread.understood(line)
        left = {id(given.line) for given in self._assembly.end_page()}
        for number, given in enumerate(divided):
            if id(given.line) in left:
                used.discard(number)
                self._not_understood(given)
        return used

    def _not_understood(self, given: CellLine) -> None:
        shape, cells = self._shape, given.cells
        if not self._fields.has(given.line, shape.numbers(cells)):
            self._unread.add(
                given.line,
                given.page,
                len(self._assembly.rows),
                like_a_row=shape.is_like_a_row(cells),
                seems_a_row=shape.seems_a_row(cells),
                is_text=shape.is_text(cells),
            )

    def _judge_centring(
        self, divided: list[CellLine], begins: list[bool], part: TablePart, running: Mapping[int, int]
    ) -> None:
        """Find out whether the page's rows are centred vertically, and doubt texts that may be of the next row."""
        shape = self._shape
        marked = [
            MarkedLine(
                given.line,
                starts,
                shape.is_text(given.cells) and number not in running and not part.spanning[number],
            )
            for number, (given, starts) in enumerate(zip(divided, begins, strict=True))
        ]
        is_first = part.header is not None and not self._assembly.rows
        found = judged(marked, is_first=is_first, is_last=part.is_last)
        self._assembly.centred = found.is_centred
        for number in found.doubtful:
            divided[number].doubtful.update(divided[number].cells.keys() & shape.wrapping)

    def _goes_on(self, given: CellLine, near: bool) -> bool:
        """Whether a line, or the texts in it, continue a row. The rest of the line is reported as unread."""
        shape = self._shape
        if shape.is_like_a_row(given.cells):
            return False
        left = {column: piece for column, piece in given.cells.items() if column not in shape.wrapping}
        if not all(shape.is_readable(column, piece.text) for column, piece in left.items()):
            return False
        if not self._assembly.go_on(given, near):
            return False
        for piece in left.values():
            place = Place(piece.page, around(piece.words))
            self._unread.add_rest(UnreadLine(piece.text, place, len(self._assembly.rows)))
        return True

    def _joins(self, divided: list[CellLine]) -> int:
        """Where the table continues if its header is not repeated: at a row, or at the text close above it."""
        first = next((number for number, given in enumerate(divided) if self._shape.begins(given.cells)), len(divided))
        if first == len(divided):
            return 0
        while first > 0:
            upper, lower = divided[first - 1], divided[first]
            if not upper.cells.keys() <= self._shape.wrapping or (
                lower.line.top - upper.line.bottom > NEXT_LINE * min(upper.line.height, lower.line.height)
            ):
                break
            first -= 1
        return first

    def _is_under_header(self, number: int, given: CellLine, part: TablePart) -> bool:
        """Whether a line belongs to the header although it names no column, such as `(Rp)`.

        On the first page no row can continue before the first row, so the lines there are remembered for later pages.
        """
        if not self._assembly.rows and part.is_first:
            if len(self._under_header) == number and not self._shape.begins(given.cells):
                self._under_header.append("".join(given.line.folded))
            return False
        return number < len(self._under_header) and self._under_header[number] == "".join(given.line.folded)
