"""Computed values: first those of each row, then those of the document, each in the order of the mapping.

They are computed after extraction and before the checks. Like extracted values, they have a rule and a confidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from waybill_documents.expressions import Expression, Miss, Scope
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.mapping.model import Mapping, TableRule
from waybill_documents.messages import DocumentMessage
from waybill_documents.precision import refuse_too_precise
from waybill_documents.value_text import reader
from waybill_documents.values import Extracted, Row, Scalar, Value

MOST_FINDINGS = 20
"""Findings of one rule that are shown in full. A clerk reads no more; one more finding counts the rest."""


def compute(mapping: Mapping, extracted: Extracted) -> list[Finding]:
    """Fills in the computed values. Returns findings for texts without a value and numbers that are too precise.

    A computed value has the lowest confidence of the values it was made from. Every row also gets the columns it
    lacks, as empty values, so that a name in a row never refers to a field of the document by accident.
    """
    refused = list(refuse_too_precise(mapping, extracted))
    findings = refused[:MOST_FINDINGS]
    if more := len(refused) - len(findings):
        findings.append(Finding(FaultCode.BAD_VALUE, DocumentMessage("number.too_precise_more", count=more)))
    for table, rule in mapping.tables.items():
        _complete(table, rule, extracted.tables.setdefault(table, []))
    data = extracted.data()
    printed = reader(mapping.locale)
    for table, rule in mapping.tables.items():
        scope = Scope(data, mapping.lookups, reader=printed)
        rows = [
            _RowInWork(row, plain, scope.with_row(plain, index))
            for index, (row, plain) in enumerate(zip(extracted.tables[table], data[table], strict=True))
        ]
        for name, expression in rule.computed.items():
            findings += _compute_column(extracted, table, name, expression, rows)
            scope.memory.clear()  # the rows have one more column now
    for name, expression in mapping.computed.items():
        scope = Scope(data, mapping.lookups, reader=printed)
        value = single(expression.evaluate(scope))
        confidence = min(_confidences(extracted, expression.names), default=100)
        extracted.fields[name] = Value(value, "", f"computed.{name}", (), confidence)
        data[name] = value
        findings += [_miss(miss, f"computed.{name}", expression, extracted) for miss in scope.misses]
    return findings


def single(value: Scalar | list[Any]) -> Scalar:
    """A value; None for a whole column, which no mapping that passed its checks can ask for."""
    return None if isinstance(value, list) else value


def _complete(table: str, rule: TableRule, rows: list[Row]) -> None:
    columns = {name: f"tables.{table}.columns.{name}" for name in rule.columns}
    columns |= {name: f"tables.{table}.notes.{name}" for name in rule.notes if name not in columns}
    for row in rows:
        for name, place in columns.items():
            if name not in row:
                row[name] = Value(None, "", place)


class _RowInWork(NamedTuple):
    """A row with its provenance, its plain values, and the scope that reads them."""

    row: Row
    plain: dict[str, Any]
    scope: Scope


def _compute_column(
    extracted: Extracted, table: str, name: str, expression: Expression, rows: list[_RowInWork]
) -> list[Finding]:
    """Computes one value for all rows, so that the next expression can already sum it up."""
    rule = f"tables.{table}.computed.{name}"
    used = [used for used in expression.names if rows and used in rows[0].row]
    outside = min(_confidences(extracted, expression.names.difference(used)), default=100)
    missed: list[tuple[int, Miss]] = []
    evaluate = expression.for_rows()
    for index, (row, plain, scope) in enumerate(rows):
        computed = evaluate(scope)
        value = None if isinstance(computed, list) else computed  # as in `single`
        confidence = outside
        for source in used:
            sure = row[source].confidence
            if sure < confidence:
                confidence = sure
        row[name] = Value(value, "", rule, (), confidence)
        plain[name] = value
        if scope.misses:
            missed += [(index, miss) for miss in scope.misses]
            scope.misses.clear()
    findings = [_miss(miss, rule, expression, extracted, table, index) for index, miss in missed[:MOST_FINDINGS]]
    if more := len(missed) - len(findings):
        if missed[-1][1].why is not None:
            message, code = DocumentMessage("value.unreadable_more", name=rule, count=more), FaultCode.BAD_VALUE
        else:
            message, code = DocumentMessage("lookup.unknown_more", name=rule, count=more), FaultCode.UNKNOWN_LOOKUP
        findings.append(Finding(code, message, None, rule))
    return findings


def _confidences(extracted: Extracted, names: Iterable[str]) -> Iterable[int]:
    """The confidences of fields and of all cells of a column. A table as such has none: it is certain."""
    for name in names:
        table, _, column = name.partition(".")
        if column:
            yield from (row[column].confidence for row in extracted.tables.get(table, ()) if column in row)
        elif name in extracted.fields:
            yield extracted.fields[name].confidence


def _miss(
    miss: Miss,
    rule: str,
    expression: Expression,
    extracted: Extracted,
    table: str | None = None,
    index: int | None = None,
) -> Finding:
    """A finding for a text that has no value. It points to where the text is printed."""
    row: Row = extracted.tables[table][index] if table is not None and index is not None else {}
    sources = {f"{table}[{index}].{used}": row[used] for used in sorted(expression.names) if used in row}
    sources |= {
        used: extracted.fields[used] for used in sorted(expression.names - row.keys()) if used in extracted.fields
    }
    # Prefer the very text, then any value with a place: `lookup('units', trim(unit))` still comes from `unit`.
    path, value = min(
        sources.items(), key=lambda item: (item[1].value != miss.text, not item[1].places), default=(None, None)
    )
    place = value.places[0] if value and value.places else None
    line = None if index is None else index + 1
    if miss.why is not None:
        message = DocumentMessage("value.unreadable", name=rule, why=miss.why, line=line)
        return Finding.at(place, FaultCode.BAD_VALUE, message, path, rule)
    message = DocumentMessage("lookup.unknown", lookup=miss.lookup, text=miss.text[:100], name=rule, line=line)
    return Finding.at(place, FaultCode.UNKNOWN_LOOKUP, message, path, rule)
