"""Turns the rows of a table into typed values with their places and confidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import re2

from waybill_documents.computed_values import MOST_FINDINGS
from waybill_documents.confidence import BASE, DOUBTFUL, FROM_DEFAULT
from waybill_documents.currencies import Amounts
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.geometry import Place, Word, around
from waybill_documents.locales import LocaleRules
from waybill_documents.mapping.model import ColumnRule, Mapping
from waybill_documents.messages import DocumentMessage
from waybill_documents.tables.assembly import Piece, RawRow
from waybill_documents.text_lines import fold
from waybill_documents.value_text import Unreadable, read
from waybill_documents.values import Row, Scalar, Value


@dataclass(frozen=True, slots=True)
class _TypedColumn:
    name: str
    rule: ColumnRule
    path: str
    pattern: Any
    default: Scalar
    known: dict[str, Scalar] = field(default_factory=dict)
    """The values of the texts so far. Most texts of a table occur in several rows."""


class TypedRows:
    """Types the rows of one table."""

    def __init__(self, name: str, mapping: Mapping, locale: LocaleRules, findings: list[Finding]) -> None:
        rule = mapping.tables[name]
        self._name = name
        self._locale = locale
        self._findings = findings
        self._reported: dict[tuple[str, str], int] = {}
        self._signs = Amounts(locale).signs
        self._notes = {column: f"tables.{name}.notes.{column}" for column in rule.notes}
        self._columns = [
            _TypedColumn(
                column,
                its,
                f"tables.{name}.columns.{column}",
                re2.compile(its.pattern) if its.pattern else None,
                read(its.default, its.type, locale) if its.default is not None else None,
            )
            for column, its in rule.columns.items()
        ]

    def typed(self, rows: list[RawRow]) -> list[Row]:
        typed = [self._row(number, raw) for number, raw in enumerate(rows)]
        self._report_more()
        return typed

    def _row(self, number: int, raw: RawRow) -> Row:
        if self._notes and raw.cells.keys() <= self._notes.keys():
            return {
                column: Value(
                    _text(pieces, " "), _text(pieces, " "), self._notes[column], _places(pieces), BASE["pattern"]
                )
                for column, pieces in raw.cells.items()
            }
        row: Row = {}
        for column in self._columns:
            name, known = column.name, column.known
            pieces = raw.cells.get(name)
            text = _text(pieces, column.rule.join) if pieces else ""
            if text not in known or not pieces:
                if not pieces or self._is_empty(text, column.rule.empty):
                    row[name] = self._nothing(number, column, raw, text)
                    continue
                try:
                    known[text] = read(_wanted(column.pattern, text), column.rule.type, self._locale)
                except Unreadable as error:
                    self._report(number, column, raw, error.says)
                    row[name] = Value(None, text, column.path, _places(pieces), 0)
                    continue
            sure = BASE["column"] - (DOUBTFUL if name in raw.doubtful else 0)
            row[name] = Value(known[text], text, column.path, _places(pieces), sure)
        return row

    def _nothing(self, number: int, column: _TypedColumn, raw: RawRow, text: str) -> Value:
        """The value of a cell that is empty or has the sign for it."""
        pieces = raw.cells.get(column.name)
        if column.rule.required and column.default is None:
            self._report(number, column, raw, None)
        # A dash means “nothing”; where nothing is printed, the default is used.
        sure = BASE["column"] if pieces or column.default is None else FROM_DEFAULT
        return Value(column.default, text, column.path, _places(pieces) if pieces else (), sure)

    def _is_empty(self, text: str, empty: tuple[str, ...]) -> bool:
        if text in empty:
            return True
        sign, _, rest = text.partition(" ")
        return rest in empty and fold(sign) in self._signs

    def _report(self, number: int, of: _TypedColumn, raw: RawRow, why: DocumentMessage | None) -> None:
        """Report a cell that is missing or cannot be read: the first ones of each column in full, then only counted."""
        column, kind = of.name, "missing" if why is None else "unreadable"
        count = self._reported[column, kind] = self._reported.get((column, kind), 0) + 1
        if count > MOST_FINDINGS:
            return
        pieces = raw.cells.get(column) or next(iter(raw.cells.values()), None)
        place = _places(pieces)[0] if pieces else None
        cell, line = f"{self._name}.{column}", number + 1
        if why is None:
            code, message = FaultCode.FIELD_MISSING, DocumentMessage("cell.missing", column=cell, line=line)
        else:
            text, type_ = _text(raw.cells[column], " "), of.rule.type
            code = FaultCode.BAD_VALUE
            message = DocumentMessage("cell.unreadable", column=cell, line=line, why=why, raw=text, type=type_)
        self._findings.append(Finding.at(place, code, message, f"{self._name}[{number}].{column}", of.path))

    def _report_more(self) -> None:
        for (column, kind), count in self._reported.items():
            more = count - MOST_FINDINGS
            if more > 0:
                self._findings.append(more_cells(self._name, column, more, missing=kind == "missing"))


def more_cells(table: str, column: str, count: int, *, missing: bool) -> Finding:
    """Counts the cells of a column that are wrong beyond those that are shown in full."""
    cell, rule = f"{table}.{column}", f"tables.{table}.columns.{column}"
    if missing:
        return Finding(
            FaultCode.FIELD_MISSING, DocumentMessage("cell.missing_more", column=cell, count=count), table, rule
        )
    return Finding(FaultCode.BAD_VALUE, DocumentMessage("cell.unreadable_more", column=cell, count=count), table, rule)


def _wanted(pattern: Any, text: str) -> str:
    """The part of a text that a column's pattern picks."""
    if pattern is None:
        return text
    match = pattern.search(text)
    return (match.group(1 if pattern.groups else 0) or "") if match else ""


def _text(pieces: list[Piece], join: str) -> str:
    if len(pieces) == 1:
        words = pieces[0].words
        return words[0].text if len(words) == 1 else " ".join([word.text for word in words])
    return join.join([" ".join([word.text for word in piece.words]) for piece in pieces])


def _places(pieces: list[Piece]) -> tuple[Place, ...]:
    if len(pieces) == 1:
        page, words = pieces[0].page, pieces[0].words
        box = words[0][1:] if len(words) == 1 else around(words)
        return (tuple.__new__(Place, (page, box, None)),)  # half the time of calling `Place`
    first, *others = pieces
    if all(piece.page == first.page for piece in others):
        return (Place(first.page, around([word for piece in pieces for word in piece.words])),)
    by_page: dict[int, list[Word]] = {}
    for piece in pieces:
        by_page.setdefault(piece.page, []).extend(piece.words)
    return tuple(Place(page, around(words)) for page, words in by_page.items())
