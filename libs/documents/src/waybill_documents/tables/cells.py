"""Divides the words of a line into columns, and splits words that pdfium joined across an edge."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from itertools import pairwise
from math import inf

from waybill_documents.currencies import MINUS, is_beside
from waybill_documents.geometry import Word, part
from waybill_documents.tables.assembly import CellLine, Piece
from waybill_documents.tables.grid import Grid
from waybill_documents.text_lines import Line

_MOST_ACROSS = 80
"""The most words of a line that are split at an edge: two for each possible column."""
_NEAR = 2.5
"""A joined word is split at most this many letters away from the edge."""


class Division:
    """Divides lines by the grid. It knows which cells are required or numbers, and what can be read in each column.

    `readable` says whether a text is a valid value of a column, given by name.
    """

    def __init__(
        self,
        grid: Grid,
        required: AbstractSet[str],
        numeric: AbstractSet[str],
        readable: Callable[[str, str], bool],
    ) -> None:
        self.grid = grid
        self.required = required
        self.numeric = numeric
        self.readable = readable
        self._befores, self._afters = (-inf, *grid.edges), (*grid.edges, inf)  # the edges on both sides of each column

    def divided(self, line: Line, page: int) -> CellLine:
        """The line's cells. Columns that the mapping does not name are left out."""
        grid = self.grid
        cells: dict[str, Piece] = {}
        doubtful: set[str] = set()
        across: list[Word] = []
        names, edges, befores, afters = grid.names, grid.edges, self._befores, self._afters
        at, words = -1, list[Word]()
        for word in line.words:
            _, left, _, right, _ = word
            index = bisect_right(edges, (left + right) / 2)
            if index != at:
                at, name = index, names[index]
                if name not in cells:
                    cells[name] = Piece(page, [])
                words = cells[name].words
            words.append(word)
            # The same as `grid.cuts`, inlined because it runs for every word of the table.
            if left + 0.5 < befores[index] or afters[index] <= right - 0.5:
                doubtful.add(names[index])
                across.append(word)
        for word in across[:_MOST_ACROSS]:
            self._settle(word, page, cells, doubtful)
        if not MINUS.isdisjoint(line.folded):
            doubtful |= self._perhaps_negative(cells)
        for stranger in grid.strangers & cells.keys():
            del cells[stranger]
        return CellLine(line, page, cells, doubtful)

    def _perhaps_negative(self, cells: dict[str, Piece]) -> set[str]:
        """Cells of number columns right after a text that ends with a dash, which may be the number's minus."""
        pairs = [(cells[left].words[-1], right) for left, right in pairwise(n for n in self.grid.names if n in cells)]
        return {
            name
            for dash, name in pairs
            if name in self.numeric
            and dash.text in MINUS
            and cells[name].words[0].text[0].isdigit()
            and is_beside(dash, cells[name].words[0])
        }

    def _settle(self, word: Word, page: int, cells: dict[str, Piece], doubtful: set[str]) -> None:
        """Split a word at an edge if its cell cannot be read with it, or if the other cell is required and empty.

        In these cases two cells touch each other. A word that cannot be split goes to the column that can read it.
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
        """Where to split: both parts must be readable; between a letter and a digit is best, then close to the edge."""
        text = word.text
        about = (edge - word.left) / (word.right - word.left) * len(text)
        joints = [
            (text[at - 1].isalpha() == text[at].isalpha(), abs(at - about), at)
            for at in range(1, len(text))
            if abs(at - about) <= _NEAR and self.readable(left, text[:at]) and self.readable(right, text[at:])
        ]
        return min(joints)[2] if joints else None
