"""Lines of a table that nothing was made of. A line that is dropped without a word is the worst this library could do.

Whether a line is the table's is only known later: what stands between two rows is, what stands below the last row of a
page may be its foot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import re2

from waybill_documents.lines import Line, fold
from waybill_documents.mapping.model import FieldRule
from waybill_documents.tables.assembly import NEXT_LINE
from waybill_documents.words import Place, around


class UnreadLine(NamedTuple):
    """A line, or what is left of it, that was not understood."""

    text: str
    place: Place
    below: int
    """How many rows stand above it: the number of the row it is below, counted from 1."""


class FieldLines:
    """Which lines are the fields' although they stand among the rows, as subtotals do: they are not lost."""

    def __init__(self, fields: Mapping[str, FieldRule]) -> None:
        sums = [rule for rule in fields.values() if rule.type in ("decimal", "integer")]
        self._labels = tuple(fold(label) for rule in sums for label in rule.label or ())
        self._patterns = [re2.compile(rule.pattern) for rule in sums if rule.pattern and not rule.label]

    def has(self, line: Line, numbers: int) -> bool:
        """Whether a line with so many numbers in its cells is a label and its value, or what a pattern looks for."""
        if numbers <= 1 and line.begins_with(self._labels):
            return True
        return any(pattern.search(line.text) for pattern in self._patterns)


class _Waiting(NamedTuple):
    unread: UnreadLine
    like_a_row: bool
    close: bool


class UnreadLines:
    """Gathers them while a table is read."""

    def __init__(self) -> None:
        self.found: list[UnreadLine] = []
        self._waiting: list[_Waiting] = []
        self._bottom: float | None = None

    def begin_page(self) -> None:
        """A page of the table begins."""
        self._bottom = None

    def understood(self, line: Line) -> None:
        """A line of the table, so that what is close below it is known to be close."""
        self._bottom = line.bottom

    def add(self, line: Line, page: int, below: int, *, like_a_row: bool) -> None:
        """A line that was not understood."""
        close = self._bottom is not None and line.top - self._bottom <= NEXT_LINE * line.height
        if close:
            self._bottom = line.bottom
        unread = UnreadLine(line.text, Place(page, around(line.words)), below)
        self._waiting.append(_Waiting(unread, like_a_row, close))

    def add_rest(self, unread: UnreadLine) -> None:
        """Words of a line whose other words went to a row."""
        self.found.append(unread)

    def goes_on(self, rows: int) -> None:
        """The table goes on below what waits. Above its first row that may be its header, unless it is like a row."""
        self.found += [each.unread for each in self._waiting if rows or each.like_a_row]
        self._waiting = []

    def end_page(self) -> None:
        """What is not close to a row and not like one is the page's foot, or its head."""
        self._waiting = [each for each in self._waiting if each.close or each.like_a_row]

    def end(self) -> None:
        """Below the last row, only what is like one is lost."""
        self.found += [each.unread for each in self._waiting if each.like_a_row]
        self._waiting = []
