"""From pages to typed values with their provenance: the stages in the order a document goes through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

import re2

from waybill_documents.computing import MOST_FINDINGS
from waybill_documents.confidence import AMBIGUOUS, BASE, DOUBTFUL, FROM_DEFAULT, NOT_FOUND, RECOGNISED
from waybill_documents.currencies import Amounts
from waybill_documents.faults import NO_TEXT, DocumentFault, FaultCode, Finding
from waybill_documents.fields import FieldResult, FieldSearch, split_labels
from waybill_documents.lines import Lines, fold, lines_of
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.looking import Looked, looked_for
from waybill_documents.mapping.model import ColumnRule, FieldRule, Mapping
from waybill_documents.reading import Unreadable, expected, read
from waybill_documents.recognition import Recognition
from waybill_documents.stages import Stages
from waybill_documents.tables.assembly import Piece, RawRow
from waybill_documents.tables.rows import TableReader
from waybill_documents.tables.unread import FieldLines, UnreadLine
from waybill_documents.values import Extracted, Row, Value
from waybill_documents.words import Page, Place, around

_EDGE = 6
"""How many lines from the top and the bottom of a page may be its running head and foot."""


@dataclass(frozen=True, slots=True)
class PageSize:
    """What a picture of a page needs to know for boxes to fit it."""

    number: int
    width: float
    height: float
    turn: int


@dataclass(slots=True)
class Extraction:
    """What was read, what is wrong with it, and the pages it was read from."""

    extracted: Extracted
    findings: list[Finding]
    pages: list[PageSize]
    looked: Looked = field(default_factory=dict)


def extract(pages: Iterable[Page], count: int, mapping: Mapping, stages: Stages) -> Extraction:
    """Read a document of `count` pages by a mapping. What a required value lacks is a finding and not raised."""
    locale = locale_rules(mapping.locale)
    readers = {
        name: TableReader(name, rule, locale, FieldLines(mapping.fields)) for name, rule in mapping.tables.items()
    }
    labels = frozenset(fold(label) for rule in mapping.fields.values() for label in rule.label or ())
    searches = [FieldSearch(name, rule, locale, labels) for name, rule in mapping.fields.items()]
    recognition = Recognition(mapping)
    amounts = Amounts(locale)
    sizes: list[PageSize] = []
    recognised: set[int] = set()
    words = 0
    for lines, neighbours in _with_neighbours(_lines(pages, stages)):
        page = lines.page
        words += len(page.words)
        if page.recognised:
            recognised.add(page.number)
        sizes.append(PageSize(page.number, page.width, page.height, page.turn))
        recognition.look(lines)
        with stages.timed("rows"):
            rest = lines
            for reader in readers.values():
                rest = Lines(page, reader.take(rest, _running(rest, neighbours)))
        with stages.timed("fields"):
            rest = Lines(page, [split_labels(amounts.joined(line), labels) for line in rest])
            for search in searches:
                search.look(rest, page.number == count)
    if not words:
        raise DocumentFault(FaultCode.NO_TEXT, NO_TEXT)
    recognition.conclude()
    with stages.timed("values"):
        extraction = _typed(mapping, locale, readers, searches, sizes)
        _doubt_recognised(extraction.extracted, recognised)
        return extraction


def _doubt_recognised(extracted: Extracted, pages: set[int]) -> None:
    if not pages:
        return
    rows = (row for table in extracted.tables.values() for row in table)
    for value in chain(extracted.fields.values(), *(row.values() for row in rows)):
        if any(place.page in pages for place in value.places):
            value.confidence = max(0, value.confidence - RECOGNISED)


def _lines(pages: Iterable[Page], stages: Stages) -> Iterator[Lines]:
    for page in pages:
        with stages.timed("lines"):
            lines = lines_of(page)
        yield lines


T = TypeVar("T")


def _with_neighbours(items: Iterable[T]) -> Iterator[tuple[T, list[T]]]:
    """Each item with the one before and the one after it; the first and the last with the two next to them.

    Three are held at a time.
    """
    window: list[T] = []
    for item in items:
        if len(window) == 3:
            window.pop(0)
        elif len(window) == 2:
            yield window[0], [window[1], item]
        window.append(item)
        del item
        if len(window) == 3:
            yield window[1], [window[0], window[2]]
    for at in range(2 if len(window) == 3 else 0, len(window)):
        yield window[at], window[:at] + window[at + 1 :]


def _running(lines: Lines, neighbours: list[Lines]) -> dict[int, int]:
    """Lines at the top and at the bottom that stand in the same place on neighbouring pages, but for their digits.

    The number of each, and on how many of the neighbours it stands.
    """
    if not neighbours:
        return {}
    edge = min(_EDGE, len(lines))
    there = [{_signature(each, number) for number in _edges(each)} for each in neighbours]
    # A text that also stands in the middle of the page is a product's that is sold more than once.
    inner = {line.text for line in lines.lines[edge : len(lines) - edge]}
    running: dict[int, int] = {}
    for numbers in (range(edge), range(len(lines) - 1, len(lines) - 1 - edge, -1)):
        for number in numbers:
            signature = _signature(lines, number)
            count = sum(signature in each for each in there)
            if not count or lines.lines[number].text in inner:
                break
            running[number] = count
    return running


def _edges(lines: Lines) -> set[int]:
    return {*range(min(_EDGE, len(lines))), *range(max(0, len(lines) - _EDGE), len(lines))}


def _signature(lines: Lines, number: int) -> tuple[int, str]:
    line = lines.lines[number]
    return round(line.top), "".join(["#" if sign.isdigit() else sign for sign in line.text])


def _typed(
    mapping: Mapping,
    locale: LocaleRules,
    readers: dict[str, TableReader],
    searches: list[FieldSearch],
    sizes: list[PageSize],
) -> Extraction:
    findings: list[Finding] = []
    fields = {search.name: _field(search, locale, findings) for search in searches}
    tables: dict[str, list[Row]] = {}
    for name, reader in readers.items():
        if not reader.rows and mapping.tables[name].required:
            findings.append(
                Finding(
                    FaultCode.TABLE_MISSING,
                    f"The table '{name}' was not found: no page has its header with rows under it.",
                    path=name,
                    rule=f"tables.{name}",
                    params={"kind": "table", "table": name},
                )
            )
        if reader.rows:
            findings.extend(_missing_columns(name, mapping, reader))
            findings.extend(_unread_lines(name, reader.unread))
        tables[name] = _Rows(name, mapping, locale, findings).typed(reader.rows)
    carries = {name: reader.carries for name, reader in readers.items()}
    extracted = Extracted(fields, tables, carries, len(sizes))
    return Extraction(extracted, findings, sizes, looked_for(mapping, extracted, searches, readers, sizes))


def _missing_columns(name: str, mapping: Mapping, reader: TableReader) -> Iterator[Finding]:
    """Columns that the table must have and does not: their values would be lost, or be taken for a neighbour's."""
    for column, rule in mapping.tables[name].columns.items():
        if column in reader.missing:
            printed = "” or “".join(rule.header or ())
            place = reader.missing[column]
            first = reader.header_place is None or reader.header_place.page == place.page
            where = "" if first else f" on page {place.page}"
            message = f"The table '{name}' has no column “{printed}”{where}."
            path = f"tables.{name}.columns.{column}"
            params = {"kind": "column", "table": name, "column": column, "header": printed}
            yield _finding(FaultCode.TABLE_MISSING, message, name, path, place, params)


def _unread_lines(name: str, unread: list[UnreadLine]) -> Iterator[Finding]:
    """What the table says and nobody read. A clerk must see it, for a row may be lost."""
    for text, place, below in unread[:MOST_FINDINGS]:
        where = f"line below row {below}" if below else "line above the first row"
        said = text if len(text) <= 80 else f"{text[:79]}…"
        message = f"{where} on page {place.page} was not understood: '{said}'"
        params = {"kind": "unread", "table": name, "line": below, "text": said}
        yield Finding(FaultCode.UNREAD_LINE, message, name, f"tables.{name}", place.page, place.box, params)
    more = len(unread) - MOST_FINDINGS
    if more > 0:
        message = f"{more} more lines of the table '{name}' were not understood"
        params = {"kind": "more", "table": name, "count": more}
        yield Finding(FaultCode.UNREAD_LINE, message, name, f"tables.{name}", params=params)


def _field(search: FieldSearch, locale: LocaleRules, findings: list[Finding]) -> Value:
    rule, result = search.rule, search.result
    path = f"fields.{search.name}"
    if rule.constant is not None:
        return Value(read(rule.constant, rule.type, locale), "", path)
    if result.found is not None:
        confidence = BASE[result.how] - (AMBIGUOUS if result.ambiguous else 0)
        return Value(result.value, result.found.raw, path, result.found.places, confidence)
    if search.misread is not None:
        found, why = search.misread
        params = {"kind": "unreadable", "field": search.name, "raw": found.raw, **expected(rule.type, locale)}
        message = f"{search.name}: {why}"
        findings.append(_finding(FaultCode.BAD_VALUE, message, search.name, path, found.places[0], params))
        return Value(None, found.raw, path, found.places, 0)
    if rule.default is not None:
        return Value(read(rule.default, rule.type, locale), "", path, (), FROM_DEFAULT)
    if rule.required:
        params = {"kind": "missing", "field": search.name, **_sought(result, rule)}
        message = f"{search.name} was not found{_why_missing(result, rule)}."
        findings.append(_finding(FaultCode.FIELD_MISSING, message, search.name, path, result.label, params))
    return Value(None, "", path, (), 0 if rule.required else NOT_FOUND)


def _why_missing(result: FieldResult, rule: FieldRule) -> str:
    if rule.label is None:
        return ""
    if result.label is not None:
        return f": there is nothing beside “{rule.label[0]}” on page {result.label.page}"
    sought = "” or “".join(rule.label)
    where = " and ".join(
        f"{word} “{phrase}”" for word, phrase in (("after", rule.after), ("before", rule.before)) if phrase
    )
    return f": there is no “{sought}” {where}" if where else f": no page has “{sought}”"


def _sought(result: FieldResult, rule: FieldRule) -> dict[str, Any]:
    """What `_why_missing` says, for other languages."""
    if rule.label is None:
        return {}
    if result.label is not None:
        return {"beside": rule.label[0]}
    phrases = {"after": rule.after, "before": rule.before}
    return {"labels": list(rule.label), **{word: phrase for word, phrase in phrases.items() if phrase}}


def _finding(
    code: FaultCode, message: str, path: str, rule: str, place: Place | None, params: dict[str, Any]
) -> Finding:
    return Finding(code, message, path, rule, place.page if place else None, place.box if place else None, params)


class _Rows:
    """Types the rows of one table."""

    def __init__(self, name: str, mapping: Mapping, locale: LocaleRules, findings: list[Finding]) -> None:
        rule = mapping.tables[name]
        self._name = name
        self._locale = locale
        self._findings = findings
        self._reported: dict[tuple[str, str], int] = {}
        self._signs = Amounts(locale).signs
        self._types = {column: its.type for column, its in rule.columns.items()}
        self._notes = {column: f"tables.{name}.notes.{column}" for column in rule.notes}
        self._columns = [
            (
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
        for column, rule, path, pattern, default in self._columns:
            pieces = raw.cells.get(column)
            text = _text(pieces, rule.join) if pieces else ""
            if not pieces or self._is_empty(text, rule.empty):
                if rule.required and default is None:
                    self._report(number, column, path, raw, None)
                # A dash is read as “nothing”; where nothing is printed, the default stands for it.
                sure = BASE["column"] if pieces or default is None else FROM_DEFAULT
                row[column] = Value(default, text, path, _places(pieces) if pieces else (), sure)
                continue
            wanted = text
            if pattern is not None:
                match = pattern.search(text)
                wanted = (match.group(1 if pattern.groups else 0) or "") if match else ""
            row[column] = self._cell(number, column, rule, path, raw, pieces, text, wanted)
        return row

    def _is_empty(self, text: str, empty: tuple[str, ...]) -> bool:
        if text in empty:
            return True
        sign, _, rest = text.partition(" ")
        return rest in empty and fold(sign) in self._signs

    def _cell(
        self,
        number: int,
        column: str,
        rule: ColumnRule,
        path: str,
        raw: RawRow,
        pieces: list[Piece],
        text: str,
        wanted: str,
    ) -> Value:
        places = _places(pieces)
        try:
            value = read(wanted, rule.type, self._locale)
        except Unreadable as error:
            self._report(number, column, path, raw, str(error))
            return Value(None, text, path, places, 0)
        confidence = BASE["column"] - (DOUBTFUL if column in raw.doubtful else 0)
        return Value(value, text, path, places, confidence)

    def _report(self, number: int, column: str, path: str, raw: RawRow, why: str | None) -> None:
        """A cell that is missing, or why it cannot be read. Of each column a clerk's first screen, then how many."""
        kind = "missing" if why is None else "unreadable"
        count = self._reported[column, kind] = self._reported.get((column, kind), 0) + 1
        if count > MOST_FINDINGS:
            return
        pieces = raw.cells.get(column) or next(iter(raw.cells.values()), None)
        place = _places(pieces)[0] if pieces else None
        params: dict[str, Any] = {"kind": kind, "table": self._name, "column": column, "line": number + 1}
        if why is None:
            code, message = FaultCode.FIELD_MISSING, f"line {number + 1}: {column} is missing"
        else:
            code, message = FaultCode.BAD_VALUE, f"line {number + 1}: {column}: {why}"
            params |= {"raw": _text(raw.cells[column], " "), **expected(self._types[column], self._locale)}
        self._findings.append(_finding(code, message, f"{self._name}[{number}].{column}", path, place, params))

    def _report_more(self) -> None:
        for (column, kind), count in self._reported.items():
            more = count - MOST_FINDINGS
            if more > 0:
                code = FaultCode.FIELD_MISSING if kind == "missing" else FaultCode.BAD_VALUE
                said = "is missing" if kind == "missing" else "cannot be read"
                message = f"{column} {said} in {more} more lines"
                params = {"kind": "more", "table": self._name, "column": column, "count": more}
                path = f"tables.{self._name}.columns.{column}"
                self._findings.append(_finding(code, message, self._name, path, None, params))


def _text(pieces: list[Piece], join: str) -> str:
    if len(pieces) == 1 and len(pieces[0].words) == 1:
        return pieces[0].words[0].text
    return join.join([" ".join([word.text for word in piece.words]) for piece in pieces])


def _places(pieces: list[Piece]) -> tuple[Place, ...]:
    if len(pieces) == 1:
        words = pieces[0].words
        if len(words) == 1:
            return (Place(pieces[0].page, words[0][1:]),)
        return (Place(pieces[0].page, around(words)),)
    by_page: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_page.setdefault(piece.page, []).append(piece)
    return tuple(Place(page, around([word for piece in its for word in piece.words])) for page, its in by_page.items())
