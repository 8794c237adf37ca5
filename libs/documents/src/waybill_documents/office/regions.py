"""Finds the tables on a sheet as islands of filled cells.

A sheet can have a title, a table, another table beside it, a note. Filled cells that touch, or have one blank row or
column between them, belong together; a diagonal touch does not count. A wrong guess loses nothing, because the text of
the sheet has every cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

Cells = Sequence[Sequence[str]]
Merged = Sequence[tuple[tuple[int, int], tuple[int, int]]]

_GAP = 1
"""Blank rows or columns that do not split a table, such as a spacer column or a blank row above the total."""


@dataclass(slots=True)
class Region:
    """A rectangle of a sheet, both ends included."""

    top: int
    left: int
    bottom: int
    right: int

    def overlaps(self, other: Region) -> bool:
        """Whether they have a cell in common."""
        return not (
            self.right < other.left or other.right < self.left or self.bottom < other.top or other.bottom < self.top
        )

    def grow(self, other: Region) -> None:
        """Extend this region to include the other one."""
        self.top, self.left = min(self.top, other.top), min(self.left, other.left)
        self.bottom, self.right = max(self.bottom, other.bottom), max(self.right, other.right)


@dataclass(frozen=True, slots=True)
class Island:
    """A table of a sheet with the title above it."""

    region: Region
    rows: list[list[str]]
    title: str | None


def find_tables(cells: Cells, merged: Merged, is_text: Callable[[int, int], bool]) -> list[Island]:
    """The tables of a sheet from top to bottom. `is_text` tells a text cell from a number or a date."""
    islands: list[Island] = []
    for region in _joined(_islands(cells, merged)):
        for part in (row for side in _beside(cells, region) for row in _below(cells, side, is_text)):
            island = _titled(cells, part)
            if len(island.rows) > 1 or (island.rows and sum(map(bool, island.rows[0])) > 1):
                islands.append(island)
    return sorted(islands, key=lambda island: (island.region.top, island.region.left))


def _islands(cells: Cells, merged: Merged) -> list[Region]:
    """Connected runs of cells. Each run joins those it overlaps in the rows above, within the gap."""
    covered = _covered(merged, len(cells))
    regions: list[Region] = []
    joined_to: list[int] = []

    def island(number: int) -> int:
        while joined_to[number] != number:
            joined_to[number] = joined_to[joined_to[number]]
            number = joined_to[number]
        return number

    above: list[list[tuple[int, int, int]]] = []
    for number, row in enumerate(cells):
        runs = []
        for first, last in _runs(row, covered.get(number, ())):
            runs.append((first, last, len(regions)))
            joined_to.append(len(regions))
            regions.append(Region(number, first, number, last))
        for others in above:
            for one, other in _touching(runs, others):
                mine, theirs = island(one), island(other)
                if mine != theirs:
                    regions[theirs].grow(regions[mine])
                    joined_to[mine] = theirs
        above = [runs, *above[:_GAP]]
    return [region for number, region in enumerate(regions) if joined_to[number] == number]


def _touching(runs: list[tuple[int, int, int]], others: list[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Pairs of runs that have a column in common; both lists go from left to right."""
    at = 0
    for first, last, number in runs:
        while at < len(others) and others[at][1] < first:
            at += 1
        ahead = at
        while ahead < len(others) and others[ahead][0] <= last:
            yield number, others[ahead][2]
            ahead += 1


def _covered(merged: Merged, rows: int) -> dict[int, list[tuple[int, int]]]:
    """The columns that merged cells cover in each row. They count as filled if their first cell is."""
    found: dict[int, list[tuple[int, int]]] = {}
    budget = 100_000  # a list of merged cells can claim the whole sheet a million times
    for (top, left), (bottom, right) in merged:
        for row in range(top, min(bottom + 1, rows)):
            found.setdefault(row, []).append((left, right))
            budget -= 1
            if budget < 0:
                return found
    return found


def _runs(row: Sequence[str], covered: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs of neighbouring filled cells in a row; small gaps are bridged."""
    if not covered and row and all(row):
        return [(0, len(row) - 1)]
    spans = [(column, column) for column, text in enumerate(row) if text]
    if covered:
        spans = sorted([*spans, *((left, min(right, len(row) - 1)) for left, right in covered if left < len(row))])
    runs: list[tuple[int, int]] = []
    for left, right in spans:
        if runs and left - runs[-1][1] <= 1 + _GAP:
            runs[-1] = (runs[-1][0], max(runs[-1][1], right))
        else:
            runs.append((left, right))
    return runs


def _joined(regions: list[Region]) -> list[Region]:
    """Join islands whose rectangles overlap, because a blank corner does not split a table."""
    if len(regions) > 2000:  # scattered cells, not tables
        return []
    found: list[Region] = []
    for region in regions:
        while True:
            touching = [other for other in found if region.overlaps(other)]
            if not touching:
                break
            for other in touching:
                region.grow(other)
                found.remove(other)
        found.append(region)
    return found


def _beside(cells: Cells, region: Region) -> list[Region]:
    """Split a region at blank columns, unless both sides share most of their rows: then the column is a spacer."""
    rows = range(region.top, region.bottom + 1)
    extents: list[list[int] | None] = [None] * (region.right + 2)  # first and last filled row of each column
    for row in rows:
        for column in range(region.left, region.right + 1):
            if cells[row][column]:
                extent = extents[column]
                if extent is None:
                    extents[column] = [row, row]
                else:
                    extent[1] = row
    parts: list[Region] = []
    for column in range(region.left, region.right + 2):
        extent = extents[column]
        if extent is None:
            continue
        found = Region(extent[0], column, extent[1], column)
        if parts and (column - parts[-1].right == 1 or _side_by_side(parts[-1], found, extents, region.right)):
            parts[-1].grow(found)
        else:
            parts.append(found)
    return parts


def _side_by_side(before: Region, first: Region, extents: list[list[int] | None], last: int) -> bool:
    """Whether the cells after a blank column, up to the next blank one, share at least half of their rows."""
    after = Region(first.top, first.left, first.bottom, first.right)
    for column in range(first.left, last + 1):
        extent = extents[column]
        if extent is None:
            break
        after.grow(Region(extent[0], column, extent[1], column))
    common = min(before.bottom, after.bottom) - max(before.top, after.top) + 1
    return 2 * common >= min(before.bottom - before.top, after.bottom - after.top) + 1


def _below(cells: Cells, region: Region, is_text: Callable[[int, int], bool]) -> list[Region]:
    """Split a region at a blank row that is followed by headings: a row of texts with other values below it."""
    parts: list[Region] = []
    top = region.top
    for row in range(region.top + 1, region.bottom):
        if any(cells[row - 1][region.left : region.right + 1]):
            continue
        heading = [column for column in range(region.left, region.right + 1) if cells[row][column]]
        if row - 2 > top and len(heading) > 1 and all(is_text(row, column) for column in heading):
            below = [column for column in heading if cells[row + 1][column]]
            if any(not is_text(row + 1, column) for column in below):
                parts.append(Region(top, region.left, row - 2, region.right))
                top = row
    return [*parts, Region(top, region.left, region.bottom, region.right)]


def _titled(cells: Cells, region: Region) -> Island:
    """Make the rows above the first row with several cells the title, and remove blank rows and columns around."""
    rows = [list(cells[row][region.left : region.right + 1]) for row in range(region.top, region.bottom + 1)]
    top = region.top
    title: list[str] = []
    wide = any(sum(map(bool, row)) > 1 for row in rows)
    while rows and (not any(rows[0]) or (wide and sum(map(bool, rows[0])) == 1)):
        title += filter(None, rows.pop(0))
        top += 1
    while rows and not any(rows[-1]):
        rows.pop()
    width = region.right - region.left + 1
    first = next((column for column in range(width) if any(row[column] for row in rows)), 0)
    last = next((column for column in reversed(range(width)) if any(row[column] for row in rows)), width - 1)
    shape = Region(top, region.left + first, top + max(len(rows), 1) - 1, region.left + last)
    return Island(shape, [row[first : last + 1] for row in rows], "\n".join(title) or None)
