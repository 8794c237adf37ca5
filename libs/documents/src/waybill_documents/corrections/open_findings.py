"""Decides which findings of the reading are still open after corrections, and which corrections leave a gap.

Findings of computed values and of checks are made again along with them. This module handles the findings of the
reading itself: a field, a column or a cell that is missing or unreadable, and lines that were not understood.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import re2

from waybill_documents.computed_values import MOST_FINDINGS
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.locales import LocaleRules
from waybill_documents.mapping.model import ColumnRule, FieldRule, Mapping, TableRule
from waybill_documents.messages import DocumentMessage
from waybill_documents.tables.typed_rows import more_cells
from waybill_documents.value_text import Unreadable, read
from waybill_documents.values import Extracted, Row, Scalar, Value

_OF_CELLS = ("cell.missing", "cell.unreadable")
_TOO_PRECISE = "value.too_precise"
_TOO_PRECISE_KIND = "decimals"
"""What release 0.1.0 wrote as `kind` instead of the key."""


def restore(mapping: Mapping, extracted: Extracted, locale: LocaleRules) -> None:
    """Make every value what it was before anything was computed and checked.

    A number with too many decimals was emptied then. It is read again here, so that it is refused and reported again.
    """
    for name, rule in mapping.fields.items():
        _restore(extracted.fields[name], rule, locale)
    for table, its in mapping.tables.items():
        for row in extracted.tables[table]:
            for name, value in row.items():
                _restore(value, its.columns.get(name), locale)


def _restore(value: Value, rule: FieldRule | ColumnRule | None, locale: LocaleRules) -> None:
    if value.unchecked is not None:
        value.confidence, value.unchecked = value.unchecked, None
    if rule is not None and rule.decimals is not None and _is_unreadable(value):
        try:
            value.value = _reread(value.raw, rule, locale)
        except Unreadable:
            return


def standing(
    mapping: Mapping, extracted: Extracted, found: Iterable[Finding], corrected: Collection[str], locale: LocaleRules
) -> list[Finding]:
    """The findings of the reading, in its order, without those that a correction has settled."""
    known = [finding for finding in found if not _is_about_precision(finding)]
    stand: list[Finding] = []
    for name, rule in mapping.fields.items():
        if name in corrected:
            stand += _emptied(name, rule, extracted.fields[name])
        else:
            stand += [finding for finding in known if finding.rule == f"fields.{name}"]
    for table, its in mapping.tables.items():
        stand += [finding for finding in known if _is_of_table(finding, table, its, extracted.tables[table])]
        stand += _Cells(table, its, locale, known, corrected).findings(extracted.tables[table])
    return stand


def _is_about_precision(finding: Finding) -> bool:
    return finding.key == _TOO_PRECISE or (finding.key is None and finding.params.get("kind") == _TOO_PRECISE_KIND)


def _emptied(name: str, rule: FieldRule, value: Value) -> Iterator[Finding]:
    if value.value is None and rule.required:
        place = value.places[0] if value.places else None
        yield Finding.at(
            place, FaultCode.FIELD_MISSING, DocumentMessage("field.emptied", field=name), name, f"fields.{name}"
        )


def _is_of_table(finding: Finding, table: str, rule: TableRule, rows: list[Row]) -> bool:
    """Whether a finding is about the table as a whole and still open.

    A missing column is settled when every row has its value.
    """
    if finding.rule is None or finding.code not in (FaultCode.TABLE_MISSING, FaultCode.UNREAD_LINE):
        return False
    if finding.rule == f"tables.{table}":
        return True
    prefix = f"tables.{table}.columns."
    column = finding.rule.removeprefix(prefix)
    return finding.rule.startswith(prefix) and any(
        row[column].value is None for row in rows if column in row and not _is_note(table, rule, row)
    )


def _is_note(table: str, rule: TableRule, row: Row) -> bool:
    """Whether a row is a note across the columns, which has no cells that could be missing."""
    for name in rule.notes:
        value = row.get(name)
        is_there = value is not None and (value.value is not None or value.places)
        if is_there and (name not in rule.columns or row[name].rule == f"tables.{table}.notes.{name}"):
            return True
    return False


def _is_unreadable(value: Value) -> bool:
    return value.value is None and value.confidence == 0 and value.raw != ""


def _reread(raw: str, rule: FieldRule | ColumnRule, locale: LocaleRules) -> Scalar:
    """The value of a printed text; for a cell with a pattern, of the part that the pattern picks."""
    if isinstance(rule, ColumnRule) and rule.pattern is not None:
        pattern = re2.compile(rule.pattern)
        match = pattern.search(raw)
        raw = (match.group(1 if pattern.groups else 0) or "") if match else ""
    return read(raw, rule.type, locale)


class _Cells:
    """Cells of one table that are missing or unreadable: the first ones of each column in full, the rest counted."""

    def __init__(
        self, table: str, rule: TableRule, locale: LocaleRules, known: list[Finding], corrected: Collection[str]
    ) -> None:
        self._table = table
        self._rule = rule
        self._locale = locale
        self._known = {
            finding.path: finding for finding in known if finding.key in _OF_CELLS and finding.path not in corrected
        }
        self._columns = {name: f"tables.{table}.columns.{name}" for name in rule.columns}

    def findings(self, rows: list[Row]) -> Iterator[Finding]:
        counts: dict[tuple[str, str], int] = {}
        for index, row in enumerate(rows):
            wrong = [(name, kind) for name in self._columns if name in row and (kind := self._kind(name, row[name]))]
            if not wrong or _is_note(self._table, self._rule, row):
                continue
            for name, kind in wrong:
                count = counts[name, kind] = counts.get((name, kind), 0) + 1
                if count <= MOST_FINDINGS:
                    path = f"{self._table}[{index}].{name}"
                    yield self._known.get(path) or self._finding(path, index, name, kind, row)
        for (name, kind), count in counts.items():
            if count > MOST_FINDINGS:
                yield more_cells(self._table, name, count - MOST_FINDINGS, missing=kind == "missing")

    def _kind(self, name: str, value: Value) -> str | None:
        if value.value is not None:
            return None
        if _is_unreadable(value):
            return "unreadable"
        rule = self._rule.columns[name]
        # A text in which the pattern found nothing is printed all the same, so the cell is not missing.
        nothing = value.raw in ("", *rule.empty) or rule.pattern is None
        return "missing" if nothing and rule.required and rule.default is None else None

    def _finding(self, path: str, index: int, name: str, kind: str, row: Row) -> Finding:
        line, value, cell = index + 1, row[name], f"{self._table}.{name}"
        place = next((place for each in (value, *row.values()) for place in each.places), None)
        if kind == "missing":
            message = DocumentMessage("cell.missing", column=cell, line=line)
            return Finding.at(place, FaultCode.FIELD_MISSING, message, path, self._columns[name])
        why, type_ = self._why(name, value.raw), self._rule.columns[name].type
        message = DocumentMessage("cell.unreadable", column=cell, line=line, why=why, raw=value.raw, type=type_)
        return Finding.at(place, FaultCode.BAD_VALUE, message, path, self._columns[name])

    def _why(self, name: str, raw: str) -> DocumentMessage:
        try:
            _reread(raw, self._rule.columns[name], self._locale)
        except Unreadable as error:
            return error.says
        return DocumentMessage("text.unreadable", text=raw[:60])
