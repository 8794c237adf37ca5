"""Reads typed values and their provenance from pages, stage by stage in the order a document goes through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from waybill_documents.computed_values import MOST_FINDINGS
from waybill_documents.confidence import AMBIGUOUS, BASE, FROM_DEFAULT, NOT_FOUND, PROVED, RECOGNISED, SETTLED
from waybill_documents.currencies import Amounts
from waybill_documents.faults import DocumentRejected, FaultCode, Finding
from waybill_documents.fields import FieldResult, FieldSearch
from waybill_documents.geometry import Page
from waybill_documents.headers_footers import running, with_neighbours
from waybill_documents.labels import split_labels
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.model import FieldRule, Mapping, TableRule
from waybill_documents.messages import DocumentMessage
from waybill_documents.recognition import Recognition
from waybill_documents.search_areas import Looked, looked_for
from waybill_documents.stages import Stages
from waybill_documents.tables.table_reader import TableReader
from waybill_documents.tables.typed_rows import TypedRows
from waybill_documents.tables.unread_lines import FieldLines, UnreadLine
from waybill_documents.text_lines import Lines, fold, lines_of
from waybill_documents.value_text import read
from waybill_documents.values import Extracted, Row, Value


@dataclass(frozen=True, slots=True)
class PageSize:
    """What is needed to draw boxes onto an image of the page."""

    number: int
    width: float
    height: float
    turn: int


@dataclass(slots=True)
class Extraction:
    """The values that were read, the findings, and the pages they were read from."""

    extracted: Extracted
    findings: list[Finding]
    pages: list[PageSize]
    looked: Looked = field(default_factory=dict)


def extract(pages: Iterable[Page | Lines], count: int, mapping: Mapping, stages: Stages) -> Extraction:
    """Read a document of `count` pages by a mapping. A missing required value is a finding; it does not raise.

    Pages that were looked at before come as the lines that were found in them.
    """
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
    on_sheets = False
    for lines, neighbours in with_neighbours(_lines(pages, stages)):
        page = lines.page
        words += len(page.words)
        on_sheets = page.sheet is not None
        if page.recognised:
            recognised.add(page.number)
        sizes.append(PageSize(page.number, page.width, page.height, page.turn))
        recognition.look(lines)
        with stages.timed("rows"):
            rest = lines
            for reader in readers.values():
                rest = Lines(page, reader.take(rest, running(rest, neighbours)))
        with stages.timed("fields"):
            rest = Lines(page, [split_labels(amounts.joined(line), labels) for line in rest])
            for search in searches:
                # Cells that a mapping names are read wherever they are, in a table, too.
                search.look(lines if search.rule.cells else rest, page.number == count)
    if not words:
        nothing = DocumentMessage("sheet.no_text") if on_sheets else DocumentMessage("pdf.no_text")
        raise DocumentRejected(FaultCode.NO_TEXT, nothing)
    recognition.conclude()
    for reader in readers.values():
        reader.finish()
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


def _lines(pages: Iterable[Page | Lines], stages: Stages) -> Iterator[Lines]:
    for page in pages:
        if isinstance(page, Lines):
            yield page
            continue
        with stages.timed("lines"):
            lines = lines_of(page)
        yield lines


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
            findings.append(_missing_table(name, mapping.tables[name], reader))
        if reader.rows:
            findings.extend(_missing_columns(name, mapping, reader))
        findings.extend(_unread_lines(name, reader.unread))
        tables[name] = TypedRows(name, mapping, locale, findings).typed(reader.rows)
    carries = {name: reader.carries for name, reader in readers.items()}
    extracted = Extracted(fields, tables, carries, len(sizes))
    return Extraction(extracted, findings, sizes, looked_for(mapping, extracted, searches, readers, sizes))


def _missing_table(name: str, rule: TableRule, reader: TableReader) -> Finding:
    """Why a table has no rows: no header, a part of one, or a header with nothing under it that begins a row."""
    code, path = FaultCode.TABLE_MISSING, f"tables.{name}"
    if reader.header_place is not None:
        message = DocumentMessage("table.no_rows", table=name, column=rule.row.begins, page=reader.header_place.page)
        return Finding.at(reader.header_place, code, message, name, path)
    headers = {column: its.header[0] for column, its in rule.columns.items() if its.header}
    near, place = reader.near_header or (None, None)
    lacking = [column for column in headers if near and column not in near.found and not rule.columns[column].optional]
    if near is None or place is None or not lacking:
        return Finding(code, DocumentMessage("table.missing", table=name), name, path)
    message = DocumentMessage(
        "table.header_incomplete",
        table=name,
        found=[header for column, header in headers.items() if column in near.found],
        missing=[headers[column] for column in lacking],
        columns=", ".join(lacking),
        page=place.page,
    )
    return Finding.at(place, code, message, name, path)


def _missing_columns(name: str, mapping: Mapping, reader: TableReader) -> Iterator[Finding]:
    """Columns that the table lacks. Without them their values would be lost or taken for those of a neighbour."""
    for column, rule in mapping.tables[name].columns.items():
        if column in reader.missing:
            place = reader.missing[column]
            first = reader.header_place is None or reader.header_place.page == place.page
            message = DocumentMessage(
                "table.column_missing",
                table=name,
                column=column,
                header=list(rule.header or ()),
                page=place.page,
                later_page=None if first else place.page,
            )
            yield Finding.at(place, FaultCode.TABLE_MISSING, message, name, f"tables.{name}.columns.{column}")


def _unread_lines(name: str, unread: list[UnreadLine]) -> Iterator[Finding]:
    """Lines of the table that nothing was made of. A clerk must see them, because a row may be lost."""
    for text, place, below in unread[:MOST_FINDINGS]:
        short = _short(text)
        if below:
            message = DocumentMessage("table.unread_line", table=name, line=below, page=place.page, text=short)
        else:
            message = DocumentMessage("table.unread_first_line", table=name, page=place.page, text=short)
        yield Finding.at(place, FaultCode.UNREAD_LINE, message, name, f"tables.{name}")
    more = len(unread) - MOST_FINDINGS
    if more > 0:
        message = DocumentMessage("table.unread_more", table=name, count=more)
        yield Finding(FaultCode.UNREAD_LINE, message, name, f"tables.{name}")


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


def _field(search: FieldSearch, locale: LocaleRules, findings: list[Finding]) -> Value:
    rule, result = search.rule, search.result
    path = f"fields.{search.name}"
    if rule.constant is not None:
        return Value(read(rule.constant, rule.type, locale), "", path)
    if result.found is not None:
        confidence = BASE[result.how] - (AMBIGUOUS if result.ambiguous else 0)
        most = SETTLED if result.ambiguous else PROVED
        return Value(result.value, result.found.raw, path, result.found.places, confidence, most)
    if search.misread is not None:
        found, why = search.misread.found, search.misread.why
        message = DocumentMessage("field.unreadable", field=search.name, why=why, raw=found.raw, type=rule.type)
        findings.append(Finding.at(found.places[0], FaultCode.BAD_VALUE, message, search.name, path))
        return Value(None, found.raw, path, found.places, 0)
    if rule.default is not None:
        return Value(read(rule.default, rule.type, locale), "", path, (), FROM_DEFAULT)
    if rule.required:
        message = _missing(search.name, result, rule)
        place = result.unmatched.places[0] if result.unmatched else result.label
        findings.append(Finding.at(place, FaultCode.FIELD_MISSING, message, search.name, path))
    return Value(None, "", path, (), 0 if rule.required else NOT_FOUND)


def _missing(name: str, result: FieldResult, rule: FieldRule) -> DocumentMessage:
    if rule.label is None:
        return DocumentMessage("field.missing", field=name)
    if result.unmatched is not None:
        text, page = _short(result.unmatched.raw), result.unmatched.places[0].page
        return DocumentMessage("field.unmatched", field=name, text=text, label=rule.label[0], page=page)
    if result.label is not None:
        page = result.label.page
        if result.too_short:
            return DocumentMessage("field.too_short", field=name, lines=rule.lines, label=rule.label[0], page=page)
        if rule.direction == "below":
            return DocumentMessage("field.empty_below", field=name, beside=rule.label[0], page=page)
        if rule.direction == "block":
            return DocumentMessage("field.empty_block", field=name, beside=rule.label[0], page=page)
        return DocumentMessage("field.empty", field=name, beside=rule.label[0], page=page)
    labels = list(rule.label)
    if rule.after and rule.before:
        return DocumentMessage(
            "field.no_label_between", field=name, labels=labels, after=rule.after, before=rule.before
        )
    if rule.after:
        return DocumentMessage("field.no_label_after", field=name, labels=labels, after=rule.after)
    if rule.before:
        return DocumentMessage("field.no_label_before", field=name, labels=labels, before=rule.before)
    return DocumentMessage("field.no_label", field=name, labels=labels)
