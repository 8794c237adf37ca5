"""Reads data that comes as JSON instead of a document, to be written as XML.

The JSON is the `data` of an earlier answer, or that whole answer: amounts as texts ("37500.00"), dates as ISO 8601.
Computed values in it are ignored and computed again. A key that the mapping does not have is a finding: it is usually a
misspelling, and ignoring it would leave the value out of the XML unnoticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any

from waybill_documents.faults import DocumentRejected, FaultCode, Finding
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.model import ColumnRule, FieldRule, Mapping, TableRule, ValueType
from waybill_documents.messages import DocumentMessage, Mistake
from waybill_documents.value_text import read
from waybill_documents.values import Extracted, Row, Scalar, Value
from waybill_documents.xml_output.validation import MOST_FINDINGS, not_more_than

LARGEST_JSON = 50_000_000
DEEPEST_JSON = 20
"""Data is three levels deep, a whole answer with its provenance six."""
LONGEST_TEXT = 100_000

_NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,20})?", re.ASCII)
"""Without an exponent: 1e999999999 is eleven characters in JSON and a gigabyte in XML."""


def read_json(body: bytes, *, largest: int = LARGEST_JSON) -> dict[str, Any]:
    """The JSON document of an upload, without floats. Raises DocumentRejected UNREADABLE if it is no JSON or a bomb."""
    if len(body) > largest:
        raise _unreadable(DocumentMessage("json.too_large", most=largest))
    try:
        document = json.loads(
            body.decode("utf-8-sig"),
            parse_float=_number,
            parse_int=_number,
            parse_constant=_no_constant,
            object_pairs_hook=_no_key_twice,
        )
    except RecursionError:
        raise _unreadable(DocumentMessage("json.too_deep")) from None
    except UnicodeDecodeError:
        raise _unreadable(DocumentMessage("json.not_utf_8")) from None
    except Mistake as mistake:
        raise _unreadable(DocumentMessage("json.mistake", why=mistake.says)) from None
    except ValueError as error:
        raise _unreadable(DocumentMessage("json.not_json", detail=str(error))) from None
    if not isinstance(document, dict):
        raise _unreadable(DocumentMessage("json.not_an_object"))
    if _deeper_than(DEEPEST_JSON, document):
        raise _unreadable(DocumentMessage("json.too_deep"))
    return document


def extracted_from_json(mapping: Mapping, document: dict[str, Any]) -> Extracted:
    """The fields and tables of a JSON document with their types, as if they had been read from a page."""
    answered = document.get("data")
    if isinstance(answered, dict) and "data" not in mapping.fields and "data" not in mapping.tables:
        _same_mapping(mapping, document.get("mapping"))
        document = answered
    reading = _Reading(mapping)
    extracted = reading.everything(document)
    if reading.findings:
        raise _wrong(reading.findings)
    return extracted


def _same_mapping(mapping: Mapping, made_by: Any) -> None:
    """Refuse the answer of another mapping, which may mean something else by the same names."""
    name = made_by.get("name") if isinstance(made_by, dict) else made_by
    if name is not None and name != mapping.name:
        message = DocumentMessage("json.other_mapping", made_by=_shown(name), mapping=mapping.name)
        raise DocumentRejected(FaultCode.NOT_RECOGNISED, message)


class _Reading:
    """One pass over a JSON document that collects everything wrong with it."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.locale: LocaleRules = locale_rules(mapping.locale)
        self.findings: list[Finding] = []

    def everything(self, document: dict[str, Any]) -> Extracted:
        mapping = self.mapping
        self._known(document, [*mapping.fields, *mapping.tables], mapping.computed, "")
        fields = {name: self._field(name, rule, document.get(name)) for name, rule in mapping.fields.items()}
        tables = {name: self._table(name, rule, document.get(name)) for name, rule in mapping.tables.items()}
        return Extracted(fields, tables)

    def _field(self, name: str, rule: FieldRule, given: Any) -> Value:
        if _empty(given) and rule.constant is not None:
            return Value(self._printed(rule.constant, rule.type), "", f"fields.{name}")
        value = self._value(rule, given, name, f"fields.{name}")
        if _empty(given) and rule.required:
            self._finding(FaultCode.FIELD_MISSING, DocumentMessage("json.missing", name=name), name, f"fields.{name}")
        return value

    def _table(self, name: str, rule: TableRule, given: Any) -> list[Row]:
        where = f"tables.{name}"
        if not given:
            if rule.required:
                self._finding(FaultCode.TABLE_MISSING, DocumentMessage("json.no_lines", table=name), name, where)
            return []
        if not isinstance(given, list):
            self._finding(FaultCode.BAD_VALUE, DocumentMessage("json.not_a_list", table=name), name, where)
            return []
        if len(given) > rule.max_rows:
            message = DocumentMessage("json.too_many_lines", table=name, lines=len(given), most=rule.max_rows)
            self._finding(FaultCode.TOO_MANY_ROWS, message, name, where)
            return []
        return [self._row(name, rule, index, row) for index, row in enumerate(given)]

    def _row(self, table: str, rule: TableRule, index: int, given: Any) -> Row:
        path = f"{table}[{index}]"
        if not isinstance(given, dict):
            message = DocumentMessage("json.line_not_an_object", table=table, line=index + 1)
            self._finding(FaultCode.BAD_VALUE, message, path, f"tables.{table}")
            return {}
        note = next((name for name in rule.notes if given.get(name) is not None and name not in rule.columns), None)
        self._known(given, [*rule.columns, *rule.notes], rule.computed, f"{path}.", line=index + 1)
        row = {}
        for name, column in rule.columns.items():
            where = f"tables.{table}.columns.{name}"
            if note is not None and given.get(name) is None:
                row[name] = Value(None, "", where)  # a note has no cells, so defaults do not apply
                continue
            row[name] = self._value(column, given.get(name), f"{path}.{name}", where, line=index + 1)
            if _empty(given.get(name)) and column.default is None and column.required and note is None:
                message = DocumentMessage("json.missing", name=f"{table}.{name}", line=index + 1)
                self._finding(FaultCode.FIELD_MISSING, message, f"{path}.{name}", where)
        if note is not None:
            row[note] = Value(self._typed("text", given[note], f"{path}.{note}"), "", f"tables.{table}.notes.{note}")
        return row

    def _value(self, rule: FieldRule | ColumnRule, given: Any, path: str, where: str, line: int | None = None) -> Value:
        if _empty(given) and rule.default is not None:
            return Value(self._printed(rule.default, rule.type), "", where)
        value = self._typed(rule.type, given, path, where, line)
        return Value(value, given if isinstance(given, str) else str(given) if value is not None else "", where)

    def _typed(
        self, type_: ValueType, given: Any, path: str, where: str | None = None, line: int | None = None
    ) -> Scalar:
        if _empty(given):
            return None
        try:
            return _TYPES[type_](given)
        except Mistake as mistake:
            message = DocumentMessage("json.bad_value", name=path, line=line, why=mistake.says)
            self._finding(FaultCode.BAD_VALUE, message, path, where)
            return None

    def _printed(self, text: str, type_: ValueType) -> Scalar:
        """A constant or a default, which the mapping writes in the document's spelling."""
        return read(text, type_, self.locale)

    def _known(
        self, given: dict[str, Any], names: list[str], computed: Iterable[str], path: str, line: int | None = None
    ) -> None:
        known = set(names).union(computed)
        for name in given:
            if name not in known:
                # Guessing is slow, and only the first findings are shown.
                close = get_close_matches(name[:64], names, 1) if len(self.findings) <= MOST_FINDINGS else ()
                meant = close[0] if close else None
                message = DocumentMessage("json.unknown_name", name=_shown(name), line=line, meant=meant)
                self._finding(FaultCode.BAD_VALUE, message, f"{path}{_shown(name)}")

    def _finding(self, code: FaultCode, message: DocumentMessage, path: str, rule: str | None = None) -> None:
        self.findings.append(Finding(code, message, path, rule))


def _empty(given: Any) -> bool:
    return given is None or (isinstance(given, str) and not given.strip())


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise Mistake(DocumentMessage("json.type.text", given=_given(given)))
    if len(given) > LONGEST_TEXT:
        raise Mistake(DocumentMessage("json.type.too_long", most=LONGEST_TEXT))
    return given.strip()  # like a text that is read from a page


def _digits(given: Any) -> str:
    text = _text(given)
    if not (text.isascii() and text.isdigit()):
        raise Mistake(DocumentMessage("json.type.digits", given=_shown(text)))
    return text


def _decimal(given: Any) -> Decimal:
    if isinstance(given, int | Decimal) and not isinstance(given, bool):
        given = format(Decimal(given), "f") if abs(Decimal(given).adjusted()) <= 30 else "too long"
    if not isinstance(given, str) or not _NUMBER.fullmatch(given):
        raise Mistake(DocumentMessage("json.type.number", given=_given(given)))
    return Decimal(given)


def _integer(given: Any) -> int:
    number = _decimal(given)
    if number != number.to_integral_value():
        raise Mistake(DocumentMessage("json.type.whole_number", given=_given(given)))
    return int(number)


def _date(given: Any) -> date:
    if isinstance(given, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", given, re.ASCII):
        try:
            return date.fromisoformat(given)
        except ValueError:
            raise Mistake(DocumentMessage("json.type.no_such_day", given=given)) from None
    raise Mistake(DocumentMessage("json.type.date", given=_given(given)))


_TYPES: dict[ValueType, Callable[[Any], Scalar]] = {
    "text": _text,
    "digits": _digits,
    "integer": _integer,
    "decimal": _decimal,
    "date": _date,
}


def _given(given: Any) -> str | DocumentMessage:
    """What somebody sent, short enough for a sentence."""
    if isinstance(given, dict):
        return DocumentMessage("json.an_object")
    if isinstance(given, list):
        return DocumentMessage("json.a_list")
    return _shown(given)


def _shown(given: Any) -> str:
    text = str(given)
    return text if len(text) <= 60 else text[:59] + "…"


def _number(text: str) -> Decimal:
    try:
        number = Decimal(text) if len(text) <= 60 else None
    except InvalidOperation:
        number = None
    if number is None or abs(number.adjusted()) > 30:
        raise Mistake(DocumentMessage("json.number_too_long", number=_shown(text)))
    return number


def _no_constant(name: str) -> None:
    raise Mistake(DocumentMessage("json.constant", name=name))


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Mistake(DocumentMessage("json.key_twice", name=_shown(twice)))
    return found


def _deeper_than(most: int, document: Any) -> bool:
    level = [document]
    for _ in range(most):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _wrong(findings: list[Finding]) -> DocumentRejected:
    return DocumentRejected(
        findings[0].code, DocumentMessage("json.not_fitting"), not_more_than(MOST_FINDINGS, findings)
    )


def _unreadable(message: DocumentMessage) -> DocumentRejected:
    return DocumentRejected(FaultCode.UNREADABLE, message)
