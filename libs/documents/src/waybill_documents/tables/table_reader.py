"""Reads a table page by page: where it begins and ends, which lines are rows, and which carry a sum.

The reader keeps only rows, so that a document of any length needs the memory of its largest page and of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from waybill_documents.currencies import Amounts, Headers
from waybill_documents.geometry import Place, Word, around
from waybill_documents.locales import LocaleRules
from waybill_documents.mapping.model import TableRule
from waybill_documents.sheets.sheet_choice import is_sheet
from waybill_documents.tables.assembly import Assembly, RawRow
from waybill_documents.tables.cells import Division
from waybill_documents.tables.grid import ColumnKinds, Grid
from waybill_documents.tables.grid_rows import GridRows, TablePart
from waybill_documents.tables.grids import Grids
from waybill_documents.tables.header import Header, HeaderWords, NearHeader, find_header, near_header
from waybill_documents.tables.pattern_rows import MatchingRows
from waybill_documents.tables.row_shape import RowShape
from waybill_documents.tables.spanning_lines import LinesApart, folded
from waybill_documents.tables.table_end import FoundEnd, TableEnd
from waybill_documents.tables.unheaded import Unheaded
from waybill_documents.tables.unread_lines import FieldLines, UnreadLine, UnreadLines
from waybill_documents.text_lines import Line, Lines
from waybill_documents.values import Carry


class TableReader:
    """Reads one table from consecutive pages."""

    def __init__(self, name: str, rule: TableRule, locale: LocaleRules, fields: FieldLines) -> None:
        self.missing: dict[str, Place] = {}
        """Required columns that a header lacks, and the place of the first such header."""
        self.header_place: Place | None = None
        self.near_header: tuple[NearHeader, Place] | None = None
        """If there is no header, the line that is most like one."""
        self._rule = rule
        self._amounts = Amounts(locale)
        self._header_words = HeaderWords.of(rule)
        self._needed = self._header_words.must  # and what the first header has, for a column does not go away
        self._start = folded(rule.start)
        self._shape = shape = RowShape(rule, locale)
        self._grids = Grids(Unheaded.of(rule), ColumnKinds(shape.numeric, shape.required))
        self._assembly = Assembly(name, rule.max_rows, shape.wrapping, rule.row.anchor)
        self._apart = LinesApart(rule, locale, self._assembly)
        self._end = TableEnd(folded(rule.end), shape, self._grids, self._apart)
        self._unread = UnreadLines()
        self._grid_rows = GridRows(shape, self._assembly, self._apart, self._unread, fields)
        self._matching: MatchingRows | None = None
        if rule.row.pattern:
            numbers = len(shape.numeric & shape.required)
            parts = self._assembly, self._apart, self._unread, fields
            self._matching = MatchingRows(rule.row.pattern, numbers, locale, *parts)
        self._grid: Grid | None = None
        self._started = False
        self._ended = False
        self._after_end: list[Line] = []
        """The page's lines from an uncertain end on. They may be the rest of a description and not the end."""

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
        self._grids.sheet = sheet = lines.page.sheet
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
            spanning = [self._apart.has(line) for line in body]
            self._fit_grid(header, lines, body, spanning)
            if header is not None:
                # Below the table header, what looks like a page header is text that continues.
                head = set(takewhile(running.__contains__, range(len(lines))))
                running = {number: pages for number, pages in running.items() if number not in head}
            shifted = {number - first: pages for number, pages in running.items()}
            used = self._read_rows(body, header, shifted, spanning, lines.page.number)
        if end is None:
            self._unread.end_page()
        else:
            self._unread.end(is_printed=True)
        return lines.lines[:first] + [line for number, line in enumerate(plain) if number not in used]

    def _read_rows(
        self, body: list[Line], header: Header | None, running: Mapping[int, int], spanning: list[bool], page: int
    ) -> set[int]:
        if self._grid is None:
            return set()
        is_first = self.header_place is not None and self.header_place.page == page
        return self._grid_rows.read(body, TablePart(page, self._grid, header, running, spanning, is_first, self._ended))

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
        grid = (
            known if header is None or known.fits(header) else self._grids.grid(header, [each.words for each in body])
        )
        if not self._end.resumes(body, grid, page):
            return False
        self._ended = False
        division = Division(known, self._shape.required, self._shape.numeric, self._shape.is_readable)
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
            return (
                0 if self._grids.sheet is None or self._matching is not None else None
            )  # each sheet has its own columns
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

    def _fit_grid(self, header: Header | None, lines: Lines, body: list[Line], spanning: list[bool]) -> None:
        if header is None:
            return
        self._grid_rows.measure(lines.lines[header.last_line])
        is_stamp = self._grid_rows.is_stamp
        rows = [line.words for line, spans in zip(body, spanning, strict=True) if not spans and not is_stamp(line)]
        grid = self._grid
        if grid is not None and grid.fits(header) and not grid.cuts_any(rows):
            return
        self._grid = self._grids.grid(header, rows)
