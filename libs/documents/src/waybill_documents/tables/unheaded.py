"""Finds columns without a header: words that stand between two headers and under neither of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from waybill_documents.geometry import Box, SheetGrid, Word
from waybill_documents.mapping.model import TableRule
from waybill_documents.tables.header import Header

_RARELY = 0.1
"""A gap between two columns may be crossed in this fraction of the lines, by a remark or a total."""

_ONE_TEXT = 0.7
"""Words with a gap of at most this many heights are one text, which belongs to one column."""


@dataclass(frozen=True, slots=True)
class Unheaded:
    """The columns without a header, by name: their neighbour, and whether they are to the right of it."""

    beside: Mapping[str, tuple[str, bool]]

    @classmethod
    def of(cls, rule: TableRule) -> Unheaded:
        """The columns of a table that name a neighbour."""
        columns = rule.columns.items()
        return cls(
            {name: (its.after, True) for name, its in columns if its.after is not None}
            | {name: (its.before, False) for name, its in columns if its.before is not None}
        )

    def on_page(self, header: Header, rows: Sequence[Sequence[Word]]) -> dict[str, Box]:
        """Boxes like those of a header, for the columns that have a word on the page."""
        found: dict[str, Box] = {}
        for name, (neighbour, is_right) in self.beside.items():
            box = header.boxes.get(neighbour)
            if box is None:
                continue
            others = [other for other in header.boxes.values() if (other[0] >= box[2]) == is_right and other != box]
            edge = min((other[0] for other in others if other[0] >= box[2]), default=inf)
            if not is_right:
                edge = max((other[2] for other in others if other[2] <= box[0]), default=-inf)
            stretch = _between(box, edge, rows, is_right=is_right)
            if stretch is not None:
                found[name] = (stretch[0], box[1], stretch[1], box[3])
        return found

    def on_sheet(self, header: Header, sheet: SheetGrid) -> dict[str, Box]:
        """Boxes that cover the column of the sheet beside the neighbour, if no header is above it."""
        found: dict[str, Box] = {}
        for name, (neighbour, is_right) in self.beside.items():
            box = header.boxes.get(neighbour)
            if box is None:
                continue
            edges = [left for left in sheet.lefts if (left >= box[2] - 0.01 if is_right else left <= box[0] + 0.01)]
            at = sheet.lefts.index(edges[0] if is_right else edges[-1]) - (not is_right)
            if not 0 <= at < len(sheet.lefts) - 1:
                continue
            left, right = sheet.lefts[at], sheet.lefts[at + 1]
            if not any(other[0] < right - 0.01 and left + 0.01 < other[2] for other in header.boxes.values()):
                found[name] = (left, box[1], right, box[3])
        return found


def _between(box: Box, edge: float, rows: Sequence[Sequence[Word]], *, is_right: bool) -> tuple[float, float] | None:
    """The nearest stretch of words between a header and the next one that touches neither header."""
    start, end = (box[0], edge) if is_right else (edge, box[2])
    spans = [(left, right) for row in rows for left, right in _runs(row) if start <= (left + right) / 2 <= end]
    stretches = _stretches(spans, _RARELY * len(rows))
    free = [
        (left, right)
        for left, right in stretches
        if not (left < box[2] and box[0] < right)
        and not (left < edge < right)
        and (right <= edge if is_right else left >= edge)
    ]
    if not free:
        return None
    return free[0] if is_right else free[-1]


def _runs(row: Sequence[Word]) -> list[tuple[float, float]]:
    """Words that follow one another as in a text, from the left of the first one to the right of the last one."""
    runs: list[tuple[float, float]] = []
    for word in row:
        if runs and word.left - runs[-1][1] <= _ONE_TEXT * (word.bottom - word.top):
            runs[-1] = (runs[-1][0], word.right)
        else:
            runs.append((word.left, word.right))
    return runs


def _stretches(spans: Sequence[tuple[float, float]], few: float) -> list[tuple[float, float]]:
    """Where more than a few of the spans lie, from left to right."""
    steps = sorted([(left, 1) for left, _ in spans] + [(right, -1) for _, right in spans])
    found: list[tuple[float, float]] = []
    covered, start = 0, 0.0
    for position, change in steps:
        before, covered = covered, covered + change
        if before <= few < covered:
            start = position
        elif covered <= few < before and position > start:
            found.append((start, position))
    return found
