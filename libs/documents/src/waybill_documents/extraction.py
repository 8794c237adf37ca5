"""From pages to typed values with their provenance: the stages in the order a document goes through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from waybill_documents.computed_values import MOST_FINDINGS
from waybill_documents.confidence import AMBIGUOUS, BASE, FROM_DEFAULT, NOT_FOUND, PROVED, RECOGNISED, SETTLED
from waybill_documents.currencies import Amounts
from waybill_documents.faults import NO_TEXT, DocumentFault, FaultCode, Finding
from waybill_documents.fields import FieldResult, FieldSearch
from waybill_documents.headers_footers import running, with_neighbours
from waybill_documents.labels import split_labels
from waybill_documents.lines import Lines, fold, lines_of
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.model import FieldRule, Mapping
from waybill_documents.recognition import Recognition
from waybill_documents.search_areas import Looked, looked_for
from waybill_documents.stages import Stages
from waybill_documents.tables.rows import TableReader
from waybill_documents.tables.typed import TypedRows
from waybill_documents.tables.unread import FieldLines, UnreadLine
from waybill_documents.value_text import expected, read
from waybill_documents.values import Extracted, Row, Value
from waybill_documents.words import Page


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
    for lines, neighbours in with_neighbours(_lines(pages, stages)):
        page = lines.page
        words += len(page.words)
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
                search.look(rest, page.number == count)
    if not words:
        raise DocumentFault(FaultCode.NO_TEXT, NO_TEXT)
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


def _lines(pages: Iterable[Page], stages: Stages) -> Iterator[Lines]:
    for page in pages:
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
        tables[name] = TypedRows(name, mapping, locale, findings).typed(reader.rows)
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
            yield Finding.at(place, FaultCode.TABLE_MISSING, message, name, path, params)


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
        most = SETTLED if result.ambiguous else PROVED
        return Value(result.value, result.found.raw, path, result.found.places, confidence, most)
    if search.misread is not None:
        found, why = search.misread
        params = {"kind": "unreadable", "field": search.name, "raw": found.raw, **expected(rule.type, locale)}
        message = f"{search.name}: {why}"
        findings.append(Finding.at(found.places[0], FaultCode.BAD_VALUE, message, search.name, path, params))
        return Value(None, found.raw, path, found.places, 0)
    if rule.default is not None:
        return Value(read(rule.default, rule.type, locale), "", path, (), FROM_DEFAULT)
    if rule.required:
        params = {"kind": "missing", "field": search.name, **_sought(result, rule)}
        message = f"{search.name} was not found{_why_missing(result, rule)}."
        findings.append(Finding.at(result.label, FaultCode.FIELD_MISSING, message, search.name, path, params))
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
