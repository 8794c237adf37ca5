"""Collects lines of a table that were not understood. Silently dropping a line would be this library's worst failure.

Whether a line belongs to the table is only known later: a line between two rows does, a line below the last row of a
page may be the footer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import re2

from waybill_documents.geometry import Place, around
from waybill_documents.mapping.model import FieldRule
from waybill_documents.tables.assembly import NEXT_LINE
from waybill_documents.text_lines import Line, fold


class UnreadLine(NamedTuple):
    """A line, or what is left of it, that was not understood."""

    text: str
    place: Place
    below: int
    """The number of the row above it, counted from 1; 0 above the first row."""


class FieldLines:
    """Recognises lines among the rows that belong to fields, such as subtotals. They are not lost."""

    def __init__(self, fields: Mapping[str, FieldRule]) -> None:
        sums = [rule for rule in fields.values() if rule.type in ("decimal", "integer")]
        self._labels = tuple(fold(label) for rule in sums for label in rule.label or ())
        self._patterns = [re2.compile(rule.pattern) for rule in sums if rule.pattern and not rule.label]

    def has(self, line: Line, numbers: int) -> bool:
        """Whether a line with this many numbers is a label with its value, or matches a field's pattern."""
        if numbers <= 1 and line.begins_with(self._labels):
            return True
        return any(pattern.search(line.text) for pattern in self._patterns)


class _Waiting(NamedTuple):
    unread: UnreadLine
    like_a_row: bool
    close: bool


class UnreadLines:
    """Collects unread lines while a table is read."""

    def __init__(self) -> None:
        self.found: list[UnreadLine] = []
        self._waiting: list[_Waiting] = []
        self._bottom: float | None = None

    def begin_page(self) -> None:
        """A page of the table begins."""
        self._bottom = None

    def understood(self, line: Line) -> None:
        """Note a line of the table, to measure the distance of the next lines from it."""
        self._bottom = line.bottom

    def add(self, line: Line, page: int, below: int, *, like_a_row: bool) -> None:
        """Add a line that was not understood."""
        close = self._bottom is not None and line.top - self._bottom <= NEXT_LINE * line.height
        if close:
            self._bottom = line.bottom
        unread = UnreadLine(line.text, Place(page, around(line.words)), below)
        self._waiting.append(_Waiting(unread, like_a_row, close))

    def add_rest(self, unread: UnreadLine) -> None:
        """Add the words of a line whose other words went to a row."""
        self.found.append(unread)

    def goes_on(self, rows: int) -> None:
        """The table continues, so the waiting lines belong to it. Above the first row, only lines like a row count."""
        self.found += [each.unread for each in self._waiting if rows or each.like_a_row]
        self._waiting = []

    def end_page(self) -> None:
        """Drop lines that are neither close to a row nor like one: they are the page's header or footer."""
        self._waiting = [each for each in self._waiting if each.close or each.like_a_row]

    def end(self) -> None:
        """After the last row, only lines like a row are reported."""
        self.found += [each.unread for each in self._waiting if each.like_a_row]
        self._waiting = []
