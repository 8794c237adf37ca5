"""A line's words by column, and words that pdfium joined across the edge of two."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from waybill_documents.currencies import MINUS, is_beside
from waybill_documents.lines import Line
from waybill_documents.tables.assembly import CellLine, Piece
from waybill_documents.tables.grid import Grid
from waybill_documents.words import Word, part

_MOST_ACROSS = 80
"""Words of a line that are parted at an edge: two for each of the most columns that a table can have."""
_NEAR = 2.5
"""A joined word is parted at most this many letters away from the edge."""


@dataclass(frozen=True, slots=True)
class Division:
    """How to divide lines: by the grid, knowing which cells cannot be empty and what can be read in which."""

    grid: Grid
    required: AbstractSet[str]
    readable: Callable[[str, str], bool]
    """Whether a column (its name) can have a text."""

    def divided(self, line: Line, page: int) -> CellLine:
        """The line's cells. Columns that the mapping does not name are left out."""
        grid = self.grid
        cells: dict[str, Piece] = {}
        doubtful: set[str] = set()
        across: list[Word] = []
        names, edges = grid.names, grid.edges
        for word in line.words:
            left, right = word.left, word.right
            index = bisect_right(edges, (left + right) / 2)
            name = names[index]
            if name in cells:
                cells[name].words.append(word)
            else:
                cells[name] = Piece(page, [word])
            # The same as `grid.cuts`, written out: this is done for every word of the table.
            if (index and left + 0.5 < edges[index - 1]) or (index < len(edges) and edges[index] <= right - 0.5):
                doubtful.add(name)
                across.append(word)
        for word in across[:_MOST_ACROSS]:
            self._settle(word, page, cells, doubtful)
        if not MINUS.isdisjoint(line.folded):
            doubtful |= self._perhaps_negative(cells)
        for stranger in grid.strangers & cells.keys():
            del cells[stranger]
        return CellLine(line, page, cells, doubtful)

    def _perhaps_negative(self, cells: dict[str, Piece]) -> set[str]:
        """Cells with a number right behind a text that ends with a dash: the dash may be their minus."""
        pairs = [(cells[left].words[-1], right) for left, right in pairwise(n for n in self.grid.names if n in cells)]
        return {
            name
            for dash, name in pairs
            if dash.text in MINUS and cells[name].words[0].text[0].isdigit() and is_beside(dash, cells[name].words[0])
        }

    def _settle(self, word: Word, page: int, cells: dict[str, Piece], doubtful: set[str]) -> None:
        """Part a word across an edge if its cell cannot be read with it, or if the other cannot be empty and is.

        Then two cells touch each other. A word that cannot be parted goes where it can be read.
        """
        names = self.grid.names
        own = self.grid.column(word)
        words = cells[names[own]].words
        strange = not self.readable(names[own], " ".join([each.text for each in words]))
        for index, edge in enumerate(self.grid.edges):
            other = names[index + 1 if index == own else index]
            lacking = other in self.required and other not in cells
            if not word.left < edge < word.right or not (strange or lacking):
                continue
            at = self._joint(word, edge, names[index], names[index + 1])
            if at is None and not (strange and self.readable(other, word.text)):
                continue
            at = at or (0 if index == own else len(word.text))
            parts = [part(word, 0, at), part(word, at, len(word.text))]
            mine, others = parts if index == own else parts[::-1]
            words[words.index(word) : words.index(word) + 1] = [mine] if mine.text else []
            if not words:
                del cells[names[own]]
            its = cells.setdefault(other, Piece(page, [])).words
            its.insert(0 if index == own else len(its), others)
            doubtful.add(other)
            return

    def _joint(self, word: Word, edge: float, left: str, right: str) -> int | None:
        """Where to part it: where both can be read, best between a letter and a digit, and then close to the edge."""
        text = word.text
        about = (edge - word.left) / (word.right - word.left) * len(text)
        joints = [
            (text[at - 1].isalpha() == text[at].isalpha(), abs(at - about), at)
            for at in range(1, len(text))
            if abs(at - about) <= _NEAR and self.readable(left, text[:at]) and self.readable(right, text[at:])
        ]
        return min(joints)[2] if joints else None
