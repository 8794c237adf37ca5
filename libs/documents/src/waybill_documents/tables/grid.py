"""Decides where one column ends and the next begins.

A header says roughly where its column is. Amounts extend to the left of theirs and descriptions to the right, so the
edge between two columns is put into a gap that no word on the page crosses, between the middles of the two headers.
If there are several gaps, as on a page with few rows, the best is the one that gives number columns one number in each
line and required columns a value; among equals, the widest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from waybill_documents.geometry import Box, Word
from waybill_documents.tables.header import Header

_MOST_WHITES = 40
"""How many gaps between two columns are compared, starting with the widest. Each costs a pass over all words."""
_DIGITS = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class Grid:
    """Columns from left to right, and the edges between them."""

    names: tuple[str, ...]
    edges: tuple[float, ...]
    boxes: tuple[Box, ...]
    strangers: frozenset[str] = frozenset()
    """Columns that the mapping does not name."""

    def column(self, word: Word) -> int:
        """The column of a word, by the word's middle."""
        return bisect_right(self.edges, (word.left + word.right) / 2)

    def fits(self, header: Header) -> bool:
        """Whether another page's header has the same columns."""
        return len(header.boxes) == len(self.names) and all(
            abs(header.boxes[name][0] - box[0]) < 0.5 and abs(header.boxes[name][2] - box[2]) < 0.5
            for name, box in zip(self.names, self.boxes, strict=True)
            if name in header.boxes
        )

    def cuts(self, word: Word) -> bool:
        """Whether an edge crosses the word, so that its column is a guess."""
        after = bisect_right(self.edges, word.left + 0.5)
        return after < len(self.edges) and self.edges[after] <= word.right - 0.5

    def cuts_any(self, rows: Sequence[Sequence[Word]]) -> bool:
        """Whether an edge crosses any of the words. The same as `cuts`, without a call for each of them."""
        edges = (*self.edges, inf)
        return any(
            edges[bisect_right(edges, left + 0.5)] <= right - 0.5 for row in rows for _, left, _, right, _ in row
        )


@dataclass(frozen=True, slots=True)
class ColumnKinds:
    """What is known about the columns besides their headers."""

    numeric: frozenset[str]
    required: frozenset[str]


def grid_for(header: Header, rows: Sequence[Sequence[Word]], kinds: ColumnKinds) -> Grid:
    """The grid that fits a header and the lines of words under it."""
    numeric = kinds.numeric
    columns = sorted(header.boxes.items(), key=lambda item: item[1][0] + item[1][2])
    names = tuple(name for name, _ in columns)
    boxes = tuple(box for _, box in columns)
    middles = [(box[0] + box[2]) / 2 for box in boxes]
    between: list[list[tuple[float, float]]] = [[] for _ in range(len(middles) - 1)]
    for left, right in [(box[0], box[2]) for box in boxes] + [(word.left, word.right) for row in rows for word in row]:
        first = max(bisect_right(middles, left) - 1, 0)
        last = min(bisect_right(middles, right), len(between))
        for index in range(first, last):
            between[index].append((left, right))
    edges: list[float] = []
    for index, stretches in enumerate(between):
        whites = _whites(stretches, middles[index], middles[index + 1])
        if len(whites) > 1:
            pair = _Pair(
                edges[-1] if edges else -inf,
                boxes[index + 2][0] if index + 2 < len(boxes) else inf,
                names[index] in numeric,
                names[index + 1] in numeric,
                names[index] in kinds.required,
                names[index + 1] in kinds.required,
            )
            whites = [min(whites, key=partial(pair.weight, rows))]
        edges.append(
            (whites[0][0] + whites[0][1]) / 2
            if whites
            else _least_covered(stretches, middles[index], middles[index + 1])
        )
    return Grid(names, tuple(edges), boxes, header.strangers)


def _whites(stretches: list[tuple[float, float]], start: float, end: float) -> list[tuple[float, float]]:
    """The gaps between `start` and `end` that no word covers."""
    whites = []
    reach = start
    for left, right in sorted(stretches):
        if left > reach:
            whites.append((reach, min(left, end)))
        reach = max(reach, right)
        if reach >= end:
            break
    if reach < end:
        whites.append((reach, end))
    wide = [(left, right) for left, right in whites if right - left > 0.2]
    return sorted(wide, key=lambda white: white[0] - white[1])[:_MOST_WHITES] if len(wide) > _MOST_WHITES else wide


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two neighbouring columns, for rating the possible edges between them."""

    start: float
    end: float
    left_numeric: bool
    right_numeric: bool
    left_needed: bool
    right_needed: bool

    def weight(self, rows: Sequence[Sequence[Word]], white: tuple[float, float]) -> tuple[float, float]:
        """The penalty for putting the edge into this gap."""
        return self.misfits(rows, (white[0] + white[1]) / 2), white[0] - white[1]

    def misfits(self, rows: Sequence[Sequence[Word]], edge: float) -> float:
        """The penalty of an edge: texts and second numbers in the cells of a number column."""
        bad = 0.0
        texts = not self.left_numeric and not self.right_numeric
        for row in rows:
            lefts = rights = 0
            for word in row:
                middle = (word.left + word.right) / 2
                if not self.start < middle < self.end:
                    continue
                number = texts or _is_number(word.text)
                if middle > edge:
                    rights += number
                    bad += self._misfit(number, self.right_numeric, self.left_numeric)
                else:
                    lefts += number
                    bad += self._misfit(number, self.left_numeric, self.right_numeric)
            bad += max(0, lefts - 1) * self.left_numeric + max(0, rights - 1) * self.right_numeric
            if lefts + rights == 1 or (texts and lefts + rights):
                # A single number between two columns belongs to the required one, and so does a text.
                bad += 0.75 * self.left_needed * (self.left_numeric or texts) * (not lefts)
                bad += 0.75 * self.right_needed * (self.right_numeric or texts) * (not rights)
        return bad

    @staticmethod
    def _misfit(number: bool, numeric: bool, other_numeric: bool) -> float:
        if numeric:
            return 0.0 if number else 1.0
        return 0.5 if number and other_numeric else 0.0


def _is_number(text: str) -> bool:
    return text[-1] in _DIGITS or (text[0] in _DIGITS and text[-1] in ",.-%)") or text == "-"


def _least_covered(stretches: list[tuple[float, float]], start: float, end: float) -> float:
    steps = sorted([(max(left, start), 1) for left, _ in stretches] + [(min(right, end), -1) for _, right in stretches])
    covered = 0
    best: tuple[int, float, float] | None = None
    for (position, change), (following, _) in zip(steps, [*steps[1:], (end, 0)], strict=True):
        covered += change
        if following > position:
            candidate = (covered, position - following, (position + following) / 2)
            best = candidate if best is None or candidate < best else best
    return best[2] if best else (start + end) / 2
