"""The values of a record as the review page shows them: their words, looks and places."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from waybill.web.languages import Language
from waybill_convert.pages.line_windows import LINES, Window
from waybill_convert.pages.shown_record import (
    Choices,
    ColumnHeading,
    ShownCell,
    ShownLine,
    ShownRecord,
    ShownTable,
    ShownWindow,
    Wrong,
    id_of,
)
from waybill_convert.pages.value_labels import column_types
from waybill_documents.corrections import CORRECTED, choices, read_record
from waybill_documents.corrections.records import places_of
from waybill_documents.faults import FaultCode
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping.model import TableRule, ValueType
from waybill_documents.messages import describe, readable, tell
from waybill_documents.value_text import show
from waybill_documents.values import Extracted, Row, Value

SURE = 80
"""A value with a lower confidence is marked as doubtful."""
_NUMERIC: Collection[ValueType] = ("decimal", "integer")


def see(
    loaded: LoadedMapping | None,
    record: Mapping[str, Any],
    language: Language,
    *,
    changed: Collection[str] = (),
    windows: Collection[Window] = (),
    extracted: Extracted | None = None,
    doubts: Collection[str] = (),
) -> ShownRecord:
    """A record as the page shows it. `changed` are the paths of corrections that are not saved yet.

    Lines are sent in these windows, and in the first one of a table that has none of them. `extracted` are the record's
    values, if somebody has read them already: that takes as long as showing them. `doubts` are the paths that a person
    has to look at, however sure their values are.
    """
    return _RecordView(loaded, record, language, changed, windows, extracted, doubts).seen()


class _RecordView:
    def __init__(
        self,
        loaded: LoadedMapping | None,
        record: Mapping[str, Any],
        language: Language,
        changed: Collection[str],
        windows: Collection[Window],
        extracted: Extracted | None,
        doubts: Collection[str],
    ) -> None:
        self._loaded = loaded
        self._doubted = frozenset(doubts)
        self._language = language
        self._locale: LocaleRules = locale_rules(loaded.mapping.locale if loaded else None)
        if extracted is None:
            extracted = read_record(loaded, dict(record)) if loaded else _untyped(record)
        self._extracted = extracted
        self._fields = loaded.mapping.fields if loaded else {}
        self._tables = loaded.mapping.tables if loaded else {}
        printed = [finding for each in record.get("checks") or () for finding in _about_print(each)]
        differing = [finding for finding in printed if finding["code"] == FaultCode.PRINTED_DIFFERS]
        self._findings: Sequence[Mapping[str, Any]] = [*(record.get("findings") or ()), *differing]
        self._looked: Mapping[str, Any] = record.get("looked") or {}
        self._changed = changed
        self._windows = windows
        self._wrong: dict[str, str] = {}
        for finding in self._findings:
            if finding.get("path"):
                self._wrong.setdefault(finding["path"], self._tell(finding))
        self._unseen = {finding["path"]: self._tell(finding) for finding in printed if _is_unseen(finding)}
        self._choices: dict[str, list[str]] = {}

    def seen(self) -> ShownRecord:
        fields = [self._field(name, value) for name, value in self._extracted.fields.items()]
        tables = [self._table(name, rows) for name, rows in self._extracted.tables.items()]
        shown = ShownRecord(fields, tables, [], [])
        sent = {cell.id for cell in shown.cells()}
        return ShownRecord(
            fields,
            tables,
            [self._problem(finding, sent) for finding in self._findings],
            [Choices(of, texts) for of, texts in self._choices.items() if texts],
            {id_of(path): places_of(places, path) for path, places in self._looked.items()},
        )

    def _tell(self, finding: Mapping[str, Any]) -> str:
        return tell(dict(finding), self._language.code, self._loaded)

    def _describe(self, path: str) -> str:
        return describe(self._loaded, path, self._language.code) if self._loaded else readable(path)

    def _field(self, name: str, value: Value) -> ShownCell:
        rule = self._fields.get(name)
        label = self._describe(name)
        return self._cell(name, label, value, rule.type if rule else None, editable=rule is not None)

    def _table(self, name: str, rows: list[Row]) -> ShownTable:
        rule = self._tables.get(name)
        shown = _columns(rule, rows)
        labels = {column: self._describe(f"{name}.{column}") for column in shown}
        types = column_types(rule)
        columns = [ColumnHeading(labels[column], _is_numeric(rows, column, types.get(column))) for column in shown]
        sent = {window.first for window in self._windows if window.table == name and window.first < len(rows)} or {0}

        def line(index: int) -> ShownLine:
            path, row = f"{name}[{index}]", rows[index]
            cells = [
                self._cell(
                    f"{path}.{column}",
                    labels[column],
                    row.get(column) or Value(None, "", ""),
                    types.get(column),
                    editable=column in types,
                    numeric=heading.numeric,
                    line=index + 1,
                )
                for column, heading in zip(shown, columns, strict=True)
            ]
            edit = self._language.say("convert.review_page.edit_line", number=index + 1)
            return ShownLine(id_of(path), path, index + 1, edit, cells)

        def window(first: int) -> ShownWindow:
            last = min(first + LINES, len(rows))
            label = self._language.say("convert.review_page.lines", first=first + 1, last=last)
            lines = [line(index) for index in range(first, last)] if first in sent else None
            doubtful = sum(self._doubts(f"{name}[{index}].", rows[index], shown) for index in range(first, last))
            places = [place for row in rows[first:last] for value in row.values() for place in value.places]
            pages = {place.page for place in places if place.cell is None}
            return ShownWindow(Window(name, first).path, label, last - first, sorted(pages), doubtful, lines)

        numbered = any(all(row[column].value == index for index, row in enumerate(rows, 1)) for column in types)
        windows = [window(first) for first in range(0, len(rows), LINES)]
        return ShownTable(name, self._describe(name), columns, windows, numbered)

    def _doubts(self, path: str, row: Row, columns: Iterable[str]) -> int:
        """How many values of a line are doubtful."""
        found = ((f"{path}{column}", row.get(column)) for column in columns)
        return sum(
            each in self._wrong or (value is not None and self._is_doubtful(each, value)) for each, value in found
        )

    def _is_doubtful(self, path: str, value: Value) -> bool:
        # A value that is not on the page cannot be checked there.
        return path in self._doubted or (bool(value.places) and value.confidence < SURE)

    def _cell(
        self,
        path: str,
        label: str,
        value: Value,
        type_: ValueType | None,
        *,
        editable: bool,
        numeric: bool | None = None,
        line: int | None = None,
    ) -> ShownCell:
        look, says = self._judged(path, value, editable=editable)
        return ShownCell(
            id_of(path),
            path,
            label if line is None else self._language.say("convert.review_page.of_line", label=label, number=line),
            show(value.value, self._locale),
            look,
            says,
            value.places,
            type_ in _NUMERIC if numeric is None else numeric,
            self._list(path) if editable else "",
            self._language.say("convert.review_page.edit_value", label=label) if editable and line is None else "",
        )

    def _judged(self, path: str, value: Value, *, editable: bool) -> tuple[str, str]:
        looks = [] if editable else ["made"]
        says: list[str] = []
        wrong = self._wrong.get(path)
        if wrong is not None:
            looks += ["wrong", "doubt"]
            says.append(wrong)
        elif self._is_doubtful(path, value):
            looks.append("doubt")
            says.append(self._language.say("convert.review_page.sure", percent=value.confidence))
        if path in self._unseen:
            says.append(self._unseen[path])
        if path in self._changed:
            looks.append("changed")
            says.append(self._language.say("convert.review_page.changed"))
        elif value.rule == CORRECTED:
            says.append(self._language.say("convert.review_page.corrected"))
        says += [place.cell for place in value.places if place.cell is not None]
        return " ".join(looks), ", ".join(says)

    def _list(self, path: str) -> str:
        """The list of texts to choose the value from, looked up once per column."""
        head, bracket, rest = path.partition("[")
        of = f"{head}.{rest.partition('].')[2]}" if bracket else path
        if of not in self._choices:
            self._choices[of] = choices(self._loaded, of) if self._loaded else []
        return of if self._choices[of] else ""

    def _problem(self, finding: Mapping[str, Any], sent: Collection[str]) -> Wrong:
        path, page = finding.get("path"), finding.get("page")
        text = self._tell(finding)
        goes = id_of(path) if path else ""
        if goes in sent:
            return Wrong(text, f"#v-{goes}", goes)
        if path and self._is_on_line(path):
            return Wrong(text, f"#v-{goes}", goes, at=path)
        if goes and any("page" in place for place in self._looked.get(path or "", ())):
            return Wrong(text, f"#b-{goes}", goes)
        return Wrong(text, f"#page-{page}" if page else "", goes)

    def _is_on_line(self, path: str) -> bool:
        """Whether the path is a value of a line that was read."""
        table, _, rest = path.partition("[")
        index, _, column = rest.partition("].")
        rows = self._extracted.tables.get(table, [])
        return index.isdigit() and int(index) < len(rows) and column in rows[int(index)]


def _about_print(check: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """What a check says about the difference between an embedded invoice and its pages."""
    return check["findings"] if str(check["name"]).startswith("printed.") else ()


def _is_unseen(finding: Mapping[str, Any]) -> bool:
    return finding["code"] == FaultCode.NOT_PRINTED and "path" in finding


def _columns(rule: TableRule | None, rows: Iterable[Row]) -> list[str]:
    """The columns in the mapping's order, without computed columns that are empty in all rows."""
    found: dict[str, bool] = dict.fromkeys([*rule.columns, *rule.notes] if rule else [], True)
    for row in rows:
        for column, value in row.items():
            found[column] = found.get(column, False) or value.value is not None
    return [column for column, shown in found.items() if shown]


def _is_numeric(rows: Iterable[Row], column: str, type_: ValueType | None) -> bool:
    if type_ is not None:
        return type_ in _NUMERIC
    first = next((row[column].value for row in rows if column in row and row[column].value is not None), None)
    return first is not None and not isinstance(first, str)


def _untyped(record: Mapping[str, Any]) -> Extracted:
    """A record whose mapping is gone or has changed: it can be shown, but not corrected."""

    def value(given: Any, origin: Mapping[str, Any]) -> Value:
        first = [origin] if "box" in origin or "cell" in origin else []
        places = places_of([*first, *origin.get("continues", ())], origin["rule"])
        return Value(given, origin["raw"], origin["rule"], places, origin["confidence"])

    data, provenance = record["data"], record["provenance"]
    return Extracted(
        {name: value(data[name], origin) for name, origin in provenance["fields"].items()},
        {
            name: [
                {column: value(data[name][index][column], origin) for column, origin in row.items()}
                for index, row in enumerate(rows)
            ]
            for name, rows in provenance["tables"].items()
        },
    )
