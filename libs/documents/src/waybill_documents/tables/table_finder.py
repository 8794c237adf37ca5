"""Finds tables without a mapping, only by how words line up.

Lines are split at wide gaps; consecutive lines whose pieces line up form a table. The finder is deliberately modest:
pieces that do not line up, prose in one or two columns, and single lines are not tables. With a mapping, `grid` and
`table_reader` do the work, because they know what to look for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from waybill_documents.geometry import Box, Page, Word, around
from waybill_documents.tables.alignment import Cell, is_aligned, is_rest, parted, without_lone_heads
from waybill_documents.text_lines import Line, Lines, lines_of

_GAP = 0.7
"""The gap between two cells is wider than this fraction of the line's height; a space is a quarter of it."""
_NARROW_GAP = 0.42
"""A narrower gap is enough where the lines above have already shown a border between two columns."""
_APART = 3.0
"""Lines further apart than this many heights do not belong to the same table."""
_EDGE = 0.35
"""Cells line up when their edges differ by less than this fraction of their height."""
_PROSE = 4.0
"""A table has at least one column whose cells have fewer words on average; columns of prose do not."""


@dataclass(frozen=True, slots=True)
class GuessedTable:
    """A table and its place. All rows have the same number of cells."""

    box: Box
    rows: list[list[str]]


def guess_tables(page: Page | Lines) -> list[GuessedTable]:
    """The page's tables from top to bottom."""
    found: list[GuessedTable] = []
    run: _Run | None = None
    for line in page if isinstance(page, Lines) else lines_of(page):
        cells = _cells(line)
        if run is not None and run.takes(line, cells):
            continue
        if run is not None and (table := run.table()) is not None:
            found.append(table)
        run = _Run(line, cells) if len(cells) > 1 else None
    if run is not None and (table := run.table()) is not None:
        found.append(table)
    return found


def _cells(line: Line) -> list[Cell]:
    cells = [Cell([line.words[0]])]
    for word in line.words[1:]:
        if word.left - cells[-1].right > _GAP * line.height:
            cells.append(Cell([word]))
        else:
            cells[-1].words.append(word)
    return cells


class _Run:
    """Consecutive lines that line up, and the horizontal ranges that they fill."""

    def __init__(self, line: Line, cells: list[Cell]) -> None:
        self._lines = [line]
        self._columns = [(cell.left, cell.right) for cell in cells]
        self._cells = [cells]

    def takes(self, line: Line, cells: list[Cell]) -> bool:
        """Take the line if it continues this table. Returns whether it was taken."""
        before = self._lines[-1]
        if line.top - before.bottom > _APART * max(line.height, before.height):
            return False
        split = [part for cell in cells for part in self._at_borders(cell, line.height)]
        places = [self._place(cell) for cell in split]
        if any(last - first > 1 for first, last in places):
            return False  # it crosses a border: a headline, a sentence, another table
        taken = [place for place in places if place[0] < place[1]]
        if len(split) > len(self._columns) and len(set(taken)) < len(taken):
            return False  # more pieces than columns, two of them in one: another table begins here
        self._lines.append(line)
        self._cells.append(split)
        for cell in split:
            self._widen(cell)
        return True

    def _place(self, cell: Cell) -> tuple[int, int]:
        """The range of columns that the piece touches; empty at the place of a new column."""
        first = 0
        while first < len(self._columns) and self._columns[first][1] <= cell.left:
            first += 1
        last = first
        while last < len(self._columns) and self._columns[last][0] < cell.right:
            last += 1
        return first, last

    def _widen(self, cell: Cell) -> None:
        first, last = self._place(cell)
        touched = self._columns[first:last]
        left = min([cell.left, *(column[0] for column in touched)])
        right = max([cell.right, *(column[1] for column in touched)])
        self._columns[first:last] = [(left, right)]

    def _at_borders(self, cell: Cell, height: float) -> Iterable[Cell]:
        """Split a piece with a narrow gap at a known border, such as a long text right before an amount."""
        first, last = self._place(cell)
        if last - first < 2:
            return [cell]
        parts = [Cell([cell.words[0]])]
        for word in cell.words[1:]:
            before = parts[-1].words[-1]
            if word.left - before.right > _NARROW_GAP * height and self._border_between(before, word):
                parts.append(Cell([word]))
            else:
                parts[-1].words.append(word)
        return parts

    def _border_between(self, before: Word, after: Word) -> bool:
        middles = ((one[1] + other[0]) / 2 for one, other in zip(self._columns, self._columns[1:], strict=False))
        return any(before.right <= middle + 1 and middle - 1 <= after.left for middle in middles)

    def table(self) -> GuessedTable | None:
        """The table, or None if these lines are not one."""
        while len(self._cells) > 1 and len(self._cells[-1]) == 1 and not self._continues(len(self._cells) - 1):
            self._drop_last()
        if len(self._cells) < 2:
            return None
        self._part_columns()
        grid = without_lone_heads([self._row(cells) for cells in self._cells])
        if not self._lines_up(grid):
            return None
        rows = self._merged(grid)
        several = sum(sum(map(bool, row)) > 1 for row in rows)
        if several < len(rows) * (2 / 3 if len(rows[0]) == 2 else 1 / 2):
            return None  # a paragraph with something beside it
        return GuessedTable(around([word for line in self._lines for word in line.words]), rows)

    def _part_columns(self) -> None:
        """Split a column where a gap, however narrow, runs through all its cells. Prose has no such gap."""
        height = sum(line.height for line in self._lines) / len(self._lines)
        columns: list[tuple[float, float]] = []
        for left, right in self._columns:
            cells = [cell for cells in self._cells for cell in cells if left <= cell.left and cell.right <= right]
            columns += parted(left, right, cells, _NARROW_GAP * height / 2)
        if len(columns) == len(self._columns):
            return
        self._columns = columns
        self._cells = [[part for cell in cells for part in self._cut(cell)] for cells in self._cells]

    def _cut(self, cell: Cell) -> list[Cell]:
        parts = [Cell([cell.words[0]])]
        for word in cell.words[1:]:
            if self._place(Cell([word])) == self._place(parts[-1]):
                parts[-1].words.append(word)
            else:
                parts.append(Cell([word]))
        return parts

    def _drop_last(self) -> None:
        self._lines.pop()
        self._cells.pop()

    def _row(self, cells: Sequence[Cell]) -> list[Cell | None]:
        row: list[Cell | None] = [None] * len(self._columns)
        for cell in cells:
            at = min(self._place(cell)[0], len(row) - 1)
            known = row[at]
            row[at] = cell if known is None else Cell(known.words + cell.words)
        return row

    def _lines_up(self, grid: Sequence[Sequence[Cell | None]]) -> bool:
        full = [row for row in grid if sum(cell is not None for cell in row) > 1]
        width = len(grid[0])
        if width < 2 or len(full) < (3 if width < 4 else 2):
            return False
        columns = [[cell for cell in column if cell is not None] for column in zip(*full, strict=True)]
        # Columns that hardly any row uses are accidental.
        if not all(columns) or sum(map(len, columns)) < 0.5 * width * len(full):
            return False
        if min(sum(len(cell.words) for cell in column) / len(column) for column in columns) >= _PROSE:
            return False
        height = sum(line.height for line in self._lines) / len(self._lines)
        tested = [column for column in columns if len(column) > 2]
        aligned = sum(is_aligned(column, _EDGE * height) for column in tested)
        return aligned >= 0.75 * len(tested) if tested else width >= 4

    def _continues(self, number: int) -> bool:
        """Whether a line is as close to the previous one as the lines of a paragraph."""
        line, before = self._lines[number], self._lines[number - 1]
        return line.top - before.bottom < 0.5 * line.height

    def _merged(self, grid: Sequence[Sequence[Cell | None]]) -> list[list[str]]:
        """Rows of texts. The continuation lines of a wrapped cell are put back into it."""
        key = self._key_column(grid)
        rows: list[list[str]] = []
        for number, cells in enumerate(grid):
            texts = ["" if cell is None else cell.text for cell in cells]
            if rows and cells[key] is None and self._continues(number) and is_rest(texts, rows[-1]):
                rows[-1] = [
                    f"{above} {text}".strip() if text else above for above, text in zip(rows[-1], texts, strict=True)
                ]
            else:
                rows.append(texts)
        return rows

    @staticmethod
    def _key_column(grid: Sequence[Sequence[Cell | None]]) -> int:
        """The first column that most lines with several cells fill. A line without it does not begin a row."""
        full = [row for row in grid if sum(cell is not None for cell in row) > 1]
        for at in range(len(grid[0])):
            if sum(row[at] is not None for row in full) > 0.6 * len(full):
                return at
        return 0
