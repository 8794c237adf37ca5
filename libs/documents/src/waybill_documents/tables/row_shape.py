"""Judges a line by its cells: does it begin a row, is it a complete row, or does it at least look like one?"""

from __future__ import annotations

from collections.abc import Mapping

from waybill_documents.locales import LocaleRules
from waybill_documents.mapping.model import TableRule
from waybill_documents.tables.assembly import Piece
from waybill_documents.value_text import Unreadable, read

_NUMBER_STARTS = frozenset("0123456789")
_BEFORE_NUMBERS = "-−–+(.,'"


class RowShape:
    """What the cells of a table's rows look like."""

    def __init__(self, rule: TableRule, locale: LocaleRules) -> None:
        self.wrapping = frozenset(
            column
            for column, its in rule.columns.items()
            if (its.wraps if its.wraps is not None else its.type == "text")
        )
        self.numeric = frozenset(column for column, its in rule.columns.items() if its.type in ("decimal", "integer"))
        self.required = frozenset(column for column, its in rule.columns.items() if its.required)
        self.types = {column: its.type for column, its in rule.columns.items()}
        self._columns = rule.columns
        self._begins = rule.row.begins
        self._locale = locale
        self._vital = self.numeric & self.required - {rule.row.begins}
        marking = {rule.row.begins} if rule.row.begins in self.types else set()
        self._telling = {column for column in (self._vital | marking) if self.types[column] != "text"}

    def begins(self, cells: Mapping[str, Piece]) -> bool:
        """Whether a row begins at a line with these cells."""
        begins = self._begins
        if begins is None or begins not in cells:
            return False
        text = cells[begins].text
        return text not in self._columns[begins].empty and self.is_readable(begins, text)

    def is_complete(self, cells: Mapping[str, Piece]) -> bool:
        """Whether a line begins a row and has everything that a row must have."""
        return (
            self.required <= cells.keys()
            and self.begins(cells)
            and all(self.is_readable(column, cells[column].text) for column in self.required)
        )

    def is_text(self, cells: Mapping[str, Piece]) -> bool:
        """Whether a line has only cells that can continue on the next line."""
        return bool(cells) and cells.keys() <= self.wrapping

    def is_like_a_row(self, cells: Mapping[str, Piece]) -> bool:
        """Whether a line looks like a row although it does not begin one: it has a number in a required column."""
        return any(self.is_readable(column, cells[column].text) for column in self._vital & cells.keys())

    def seems_a_row(self, cells: Mapping[str, Piece]) -> bool:
        """Whether a line may be a row that cannot be read: something like a number where a row has its numbers.

        `1.234,50` is no number in English, but still an amount.
        """
        return len(cells) > 1 and any(
            word.text.lstrip(_BEFORE_NUMBERS)[:1] in _NUMBER_STARTS
            for column in self._telling & cells.keys()
            for word in cells[column].words
            if word.text.strip(_BEFORE_NUMBERS)
        )

    def numbers(self, cells: Mapping[str, Piece]) -> int:
        """How many cells of number columns have a number."""
        return sum(self.is_readable(column, cells[column].text) for column in self.numeric & cells.keys())

    def is_readable(self, column: str, text: str) -> bool:
        """Whether a text is a value of the column."""
        if column not in self.types:
            return True
        try:
            return read(text, self.types[column], self._locale) is not None
        except Unreadable:
            return False
