"""Aligns cells for tables without a mapping: which cells form a column, and where a column must be split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from waybill_documents.geometry import Word

_MANY = 6
"""With this many cells, even a narrow gap through all of them splits a column."""


@dataclass(slots=True)
class Cell:
    words: list[Word]

    @property
    def left(self) -> float:
        return self.words[0].left

    @property
    def right(self) -> float:
        return self.words[-1].right

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)


def without_lone_heads(grid: list[list[Cell | None]]) -> list[list[Cell | None]]:
    """Move a header that is beside its column into it, such as a left-aligned header over right-aligned numbers."""
    while True:
        filled = [sum(row[at] is not None for row in grid) for at in range(len(grid[0]))]
        for at, count in enumerate(filled):
            if count > 1 or len(filled) < 3:
                continue
            free = [
                other
                for other in (at + 1, at - 1)
                if 0 <= other < len(filled)
                and filled[other] > count
                and not any(row[at] is not None and row[other] is not None for row in grid)
            ]
            if free or not count:
                for row in grid:
                    head = row.pop(at)
                    if head is not None:
                        row[free[0] - (free[0] > at)] = head
                break
        else:
            return grid


def parted(left: float, right: float, cells: Sequence[Cell], narrow: float) -> list[tuple[float, float]]:
    """The column, or the several columns it splits into."""
    whole = [(left, right)]
    several = [cell for cell in cells if len(cell.words) > 1]
    if len(several) < _MANY or 5 * len(several) < 3 * len(cells):
        return whole
    spans = sorted((word.left, word.right) for cell in cells for word in cell.words)
    columns = [spans[0]]
    for start, end in spans[1:]:
        if start - columns[-1][1] > narrow:
            columns.append((start, end))
        else:
            columns[-1] = (columns[-1][0], max(columns[-1][1], end))
    for first, last in columns:
        texts = [" ".join(word.text for word in cell.words if first <= word.left < last) for cell in cells]
        # A column of `Rp` or of colons, or one with only a few cells, is not worth splitting off.
        if 2 * sum(map(bool, texts)) < len(texts) or len(set(texts)) < 3:
            return whole
    return columns


def is_rest(texts: Sequence[str], above: Sequence[str]) -> bool:
    """Whether these cells continue the ones above: there are few, and none is a number under a number."""
    filled = [at for at, text in enumerate(texts) if text]
    return len(filled) <= max(1, len(texts) // 3) and all(
        above[at] and not (_is_number(texts[at]) and _is_number(above[at])) for at in filled
    )


def _is_number(text: str) -> bool:
    digits = sum(letter.isdigit() for letter in text)
    letters = sum(letter.isalpha() for letter in text)
    return digits > 0 and letters <= digits // 2


def is_aligned(cells: Sequence[Cell], tolerance: float) -> bool:
    """Whether at least three of five cells share a left edge, a right edge or a middle."""
    sides = (
        sorted(cell.left for cell in cells),
        sorted(cell.right for cell in cells),
        sorted((cell.left + cell.right) / 2 for cell in cells),
    )
    return any(5 * _most_within(side, tolerance) >= 3 * len(cells) for side in sides)


def _most_within(places: Sequence[float], tolerance: float) -> int:
    most = first = 0
    for last, place in enumerate(places):
        while place - places[first] > tolerance:
            first += 1
        most = max(most, last - first + 1)
    return most
