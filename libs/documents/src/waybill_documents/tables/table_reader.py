"""Reads a table page by page: where it begins and ends, which lines are rows, and which carry a sum.

The reader keeps only rows, so that a document of any length needs the memory of its largest page and of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from math import inf

from waybill_documents.currencies import Amounts, Headers
from waybill_documents.geometry import Place, SheetGrid, Word, around
from waybill_documents.locales import LocaleRules
from waybill_documents.mapping.model import TableRule
from waybill_documents.sheets.sheet_choice import is_sheet
from waybill_documents.tables.assembly import NEXT_LINE, Assembly, CellLine, RawRow
from waybill_documents.tables.cells import Division
from waybill_documents.tables.grid import ColumnKinds, Grid, grid_for
from waybill_documents.tables.header import Header, HeaderWords, NearHeader, find_header, near_header
from waybill_documents.tables.pattern_rows import MatchingRows
from waybill_documents.tables.row_shape import RowShape
from waybill_documents.tables.ruled_grid import ruled_grid
from waybill_documents.tables.spanning_lines import LinesApart, folded
from waybill_documents.tables.table_end import FoundEnd, TableEnd
from waybill_documents.tables.unheaded import Unheaded
from waybill_documents.tables.unread_lines import FieldLines, UnreadLine, UnreadLines
from waybill_documents.tables.vertical_centring import MarkedLine, judged
from waybill_documents.text_lines import Line, Lines
from waybill_documents.values import Carry

_TALL = 2.0
"""Lines this many times as high as the header are stamps and are ignored."""


class TableReader:
    """Reads one table from consecutive pages."""

    def __init__(self, name: str, rule: TableRule, locale: LocaleRules, fields: FieldLines) -> None:
        self.missing: dict[str, Place] = {}
        """Required columns that a header lacks, and the place of the first such header."""
        self.header_place: Place | None = None
        self.near_header: tuple[NearHeader, Place] | None = None
        """If there is no header, the line that is most like one."""
        self._rule = rule
        self._fields = fields
        self._locale = locale
        self._amounts = Amounts(locale)
        self._header_words = HeaderWords.of(rule)
        self._unheaded = Unheaded.of(rule)
        self._needed = self._header_words.must  # and what the first header has, for a column does not go away
        self._start = folded(rule.start)
        self._shape = shape = RowShape(rule, locale)
        self._kinds = ColumnKinds(shape.numeric, shape.required)
        self._assembly = Assembly(name, rule.max_rows, shape.wrapping, rule.row.anchor)
        self._apart = LinesApart(rule, locale, self._assembly)
        self._end = TableEnd(folded(rule.end), shape, self._new_grid, self._apart)
        self._unread = UnreadLines()
        self._matching: MatchingRows | None = None
        if rule.row.pattern:
            numbers = len(shape.numeric & shape.required)
            parts = self._assembly, self._apart, self._unread, fields
            self._matching = MatchingRows(rule.row.pattern, numbers, locale, *parts)
        self._grid: Grid | None = None
        self._sheet: SheetGrid | None = None
        self._started = False
        self._ended = False
        self._after_end: list[Line] = []
        """The page's lines from an uncertain end on. They may be the rest of a description and not the end."""
        self._under_header: list[str] = []
        self._tall = inf

    @property
    def rows(self) -> list[RawRow]:
        """The rows read so far."""
        return self._assembly.rows

    @property
    def carries(self) -> list[Carry]:
        """The sums that the pages carry over."""
        return self._apart.carries

    @property
    def unread(self) -> list[UnreadLine]:
        """Lines between the rows that were not understood."""
        return self._unread.found

    def take(self, lines: Lines, running: Mapping[int, int]) -> list[Line]:
        """Read the table's part of a page. Returns the lines that are not part of it.

        `running` has the numbers of lines that are repeated on neighbouring pages, and on how many. They are probably
        headers and footers and do not belong to a row.
        """
        self._sheet = sheet = lines.page.sheet
        if sheet and self._rule.sheet is not None and not is_sheet(self._rule.sheet, sheet):
            return lines.lines
        if self._ended and not self._after_end:
            return lines.lines
        header = find_header(lines, self._header_words) if self._matching is None else None
        missing = dict(self.missing)
        first = self._first_line(lines, header)
        if first is None:
            return lines.lines
        plain = lines.lines[first:]
        # The cells of a sheet are never parts of one amount.
        headers = self._headers(header)
        body = [self._amounts.joined(line, headers) for line in plain] if sheet is None else plain
        if self._ended and not self._resume(body, header, lines.page.number):
            self.missing = missing
            return lines.lines
        if self._matching is not None:
            end = self._end.among(body)
            body = self._above(end, body)
            shifted = {number - first: pages for number, pages in running.items()}
            used = self._matching.read(lines.page.number, body, shifted)
        else:
            end = self._end.below(header, self._grid, body, lines.page.number)
            body = self._above(end, body)
            self._fit_grid(header, lines, body)
            if header is not None:
                # Below the table header, what looks like a page header is text that continues.
                head = set(takewhile(running.__contains__, range(len(lines))))
                running = {number: pages for number, pages in running.items() if number not in head}
            shifted = {number - first: pages for number, pages in running.items()}
            used = self._read_grid(lines.page.number, body, header, shifted)
        if end is None:
            self._unread.end_page()
        else:
            self._unread.end(is_printed=True)
        return lines.lines[:first] + [line for number, line in enumerate(plain) if number not in used]

    def _above(self, end: FoundEnd | None, body: list[Line]) -> list[Line]:
        """The lines above the table's end."""
        if end is None:
            return body
        self._ended = True
        self._after_end = [] if end.certain else body[end.number :]
        return body[: end.number]

    def _resume(self, body: list[Line], header: Header | None, page: int) -> bool:
        """After an uncertain end, go on if there are rows on the next page: what looked like the end was text."""
        after, self._after_end = self._after_end, []
        known = self._grid
        if known is None:
            return False
        grid = known if header is None or known.fits(header) else self._new_grid(header, [each.words for each in body])
        if not self._end.resumes(body, grid, page):
            return False
        self._ended = False
        division = self._division(known)
        for line in after:
            if not self._assembly.go_on(division.divided(line, page - 1), True):
                break
        return True

    def finish(self) -> None:
        """There are no more pages. Lines like rows after the last row are reported, even if there was no `end`."""
        self._unread.end()

    # Where the table is on the page.

    def _first_line(self, lines: Lines, header: Header | None) -> int | None:
        if header is not None:
            place = Place(lines.page.number, around([Word("", *box) for box in header.boxes.values()]))
            for column in self._needed - header.boxes.keys():
                self.missing.setdefault(column, place)
            if not self._started:
                self.header_place = place
                self._needed |= header.boxes.keys() & self._header_words.phrases.keys()
            self._started = True
            return header.last_line + 1
        if self._started:
            return 0 if self._sheet is None or self._matching is not None else None  # each sheet has its own columns
        if self._matching is None:
            self._note_near_header(lines)
        else:
            number = next((number for number, line in enumerate(lines) if line.begins_with(self._start)), -1)
            self._started = number >= 0 or not self._start
            return number + 1 if self._started else None
        return None

    def _note_near_header(self, lines: Lines) -> None:
        near = near_header(lines, self._header_words)
        if near is not None and (self.near_header is None or len(near.found) > len(self.near_header[0].found)):
            self.near_header = near, Place(lines.page.number, near.box)

    def _headers(self, header: Header | None) -> Headers:
        """The header of the page, or the one above the rows so far."""
        if header is not None:
            boxes = header.boxes
        elif self._grid is not None:
            boxes = dict(zip(self._grid.names, self._grid.boxes, strict=True))
        else:
            return Headers()
        types = self._shape.types
        texts = frozenset(box for name, box in boxes.items() if types.get(name) in ("text", "digits", "date"))
        return Headers(tuple(boxes.values()), texts)

    def _fit_grid(self, header: Header | None, lines: Lines, body: list[Line]) -> None:
        if header is None:
            return
        self._tall = _TALL * lines.lines[header.last_line].height
        rows = [line.words for line in body if not self._is_stamp(line) and not self._apart.has(line)]
        grid = self._grid
        if grid is not None and grid.fits(header) and not grid.cuts_any(rows):
            return
        self._grid = self._new_grid(header, rows)

    def _new_grid(self, header: Header, rows: list[list[Word]]) -> Grid:
        if self._sheet is not None:
            return ruled_grid(header.with_boxes(self._unheaded.on_sheet(header, self._sheet)), self._sheet)
        return grid_for(header.with_boxes(self._unheaded.on_page(header, rows)), rows, self._kinds)

    def _is_stamp(self, line: Line) -> bool:
        return line.height > self._tall and all(word.bottom - word.top > self._tall for word in line.words)

    # Rows by columns.

    def _read_grid(self, page: int, body: list[Line], header: Header | None, running: Mapping[int, int]) -> set[int]:
        """Read the rows. Returns the numbers of the lines that were used."""
        grid = self._grid
        if grid is None:
            return set()
        division = self._division(grid)
        divided = [division.divided(line, page) for line in body]
        start = 0 if header is not None else self._joins(divided)
        begins = [self._shape.begins(given.cells) for given in divided]
        numbers = range(len(divided) - 1, -1, -1)
        last_row = next((at for at in numbers if begins[at] and self._shape.is_complete(divided[at].cells)), -1)
        if any(number > last_row and self._apart.carries_out(line) for number, line in enumerate(body)):
            running = {}  # the page footer is below the carried sum
        if not self._assembly.centred:
            self._judge_centring(divided, begins, header is not None and not self.rows, running)
        used: set[int] = set()
        near = bool(self.rows)  # the first lines of a page may continue a row of the previous page
        unread, apart, shape = self._unread, self._apart, self._shape
        bottom = max(box[3] for box in header.boxes.values()) if header is not None else None
        unread.begin_page(bottom)
        for number, given in enumerate(divided):
            line = given.line
            if number < start:
                if number not in running and shape.is_like_a_row(given.cells):
                    unread.add(line, page, len(self.rows), like_a_row=True)
                continue
            if self._is_stamp(line) or (header is not None and self._is_under_header(number, given)):
                continue
            if apart.skips(line) or apart.takes_carry(line, page, "into"):
                used.add(number)
            elif number > last_row and apart.takes_carry(line, page, "out"):
                used.add(number)
                unread.goes_on(len(self.rows))
                break
            elif apart.takes_note(line, page):
                used.add(number)
            elif begins[number]:
                unread.goes_on(len(self.rows), line, bottom)
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
                len(self.rows),
                like_a_row=shape.is_like_a_row(cells),
                seems_a_row=shape.seems_a_row(cells),
                is_text=shape.is_text(cells),
            )

    def _judge_centring(
        self, divided: list[CellLine], begins: list[bool], is_first: bool, running: Mapping[int, int]
    ) -> None:
        """Find out whether the page's rows are centred vertically, and doubt texts that may be of the next row."""
        shape, apart = self._shape, self._apart
        marked = [
            MarkedLine(
                given.line,
                starts,
                shape.is_text(given.cells) and number not in running and not apart.has(given.line),
            )
            for number, (given, starts) in enumerate(zip(divided, begins, strict=True))
        ]
        found = judged(marked, is_first=is_first, is_last=self._ended)
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
            self._unread.add_rest(UnreadLine(piece.text, place, len(self.rows)))
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

    def _is_under_header(self, number: int, given: CellLine) -> bool:
        """Whether a line belongs to the header although it names no column, such as `(Rp)`.

        On the first page no row can continue before the first row, so the lines there are remembered for later pages.
        """
        folded = "".join(given.line.folded)
        if not self.rows and self.header_place is not None and self.header_place.page == given.page:
            if len(self._under_header) == number and not self._shape.begins(given.cells):
                self._under_header.append(folded)
            return False
        return number < len(self._under_header) and self._under_header[number] == folded

    def _division(self, grid: Grid) -> Division:
        return Division(grid, self._shape.required, self._shape.numeric, self._shape.is_readable)
