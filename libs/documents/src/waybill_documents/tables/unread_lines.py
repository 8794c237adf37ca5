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

_WIDEST = 5.0
"""The rows of a table are at most this many heights apart."""


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
    line: Line
    like_a_row: bool
    close: bool
    is_text: bool


class UnreadLines:
    """Collects unread lines while a table is read."""

    def __init__(self) -> None:
        self.found: list[UnreadLine] = []
        self._waiting: list[_Waiting] = []
        self._bottom: float | None = None
        self._in_step: float | None = None
        """How far down the next line of the table may be, going by the gaps between its lines so far."""
        self._step = 0.0

    def begin_page(self, header: float | None = None) -> None:
        """A page of the table begins, below this header."""
        self._bottom = None
        self._in_step = header

    def understood(self, line: Line) -> None:
        """Note a line of the table, to measure the distance of the next lines from it."""
        if self._in_step is not None:
            self._step = max(self._step, min(line.top - self._in_step, _WIDEST * line.height))
        self._bottom = self._in_step = line.bottom

    def add(
        self,
        line: Line,
        page: int,
        below: int,
        *,
        like_a_row: bool,
        seems_a_row: bool = False,
        is_text: bool = False,
    ) -> None:
        """Add a line that was not understood. One that only seems to be a row must stand where a row would."""
        close = self._bottom is not None and line.top - self._bottom <= NEXT_LINE * line.height
        if close:
            self._bottom = line.bottom
        in_step = (
            self._in_step is not None
            and line.top - self._in_step <= max(NEXT_LINE * line.height, self._step) + line.height / 2
        )
        if in_step:
            self._in_step = line.bottom
        unread = UnreadLine(line.text, Place(page, around(line.words)), below)
        like_a_row = like_a_row or (seems_a_row and (in_step or not below))
        self._waiting.append(_Waiting(unread, line, like_a_row, close, is_text))

    def add_rest(self, unread: UnreadLine) -> None:
        """Add the words of a line whose other words went to a row."""
        self.found.append(unread)

    def goes_on(self, rows: int, line: Line | None = None, header: float | None = None) -> None:
        """The table continues with this line, so the waiting lines belong to it.

        Above the first row, these are only lines like a row, and texts that are at least as close to it as to the
        header.
        """
        of_row = len(self._waiting)
        if not rows:
            of_row = self._texts_of_row(line, header) if line is not None and header is not None else of_row
        self.found += [
            each.unread for number, each in enumerate(self._waiting) if rows or each.like_a_row or number >= of_row
        ]
        self._waiting = []

    def _texts_of_row(self, line: Line, header: float) -> int:
        """The first of the waiting lines that is a text of the row at this line and not a part of the header."""
        lower = line
        for number in range(len(self._waiting) - 1, -1, -1):
            each = self._waiting[number]
            upper = self._waiting[number - 1].line.bottom if number else header
            gap = lower.top - each.line.bottom
            if not each.is_text or gap > NEXT_LINE * each.line.height or gap > each.line.top - upper + 0.1:
                return number + 1
            lower = each.line
        return 0

    def end_page(self) -> None:
        """Drop lines that are neither close to a row nor like one: they are the page's header or footer."""
        self._waiting = [each for each in self._waiting if each.close or each.like_a_row]

    def end(self, *, is_printed: bool = False) -> None:
        """The table ends. Above a printed end, everything belongs to it; otherwise only lines like a row do."""
        self.found += [each.unread for each in self._waiting if each.like_a_row or (is_printed and each.unread.below)]
        self._waiting = []
