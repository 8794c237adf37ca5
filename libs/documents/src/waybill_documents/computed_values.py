"""Computed values: first those of each row, then those of the document, each in the order of the mapping.

They come after extraction and before the checks, and are values like the extracted ones, with a rule and a confidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from waybill_documents.expressions import Expression, Miss, Scope
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.mapping.model import Mapping, TableRule
from waybill_documents.precision import refuse_too_precise
from waybill_documents.values import Extracted, Row, Scalar, Value

MOST_FINDINGS = 20
"""Findings of one rule that are told in full; a clerk reads no more, and one sentence says how many there are."""


def compute(mapping: Mapping, extracted: Extracted) -> list[Finding]:
    """Fills in the computed values, and says which texts a look-up does not have and which numbers are too precise.

    A computed value is as sure as the least sure value it was made from. Every row also gets the columns it lacks, as
    empty values, so that a name in a row never means a field of the document by accident.
    """
    refused = list(refuse_too_precise(mapping, extracted))
    findings = refused[:MOST_FINDINGS]
    if more := len(refused) - len(findings):
        message = f"there are {more} more numbers with too many digits after the decimal sign"
        findings.append(Finding(FaultCode.BAD_VALUE, message, params={"kind": "more", "count": more}))
    for table, rule in mapping.tables.items():
        _complete(table, rule, extracted.tables.setdefault(table, []))
    data = extracted.data()
    for table, rule in mapping.tables.items():
        scope = Scope(data, mapping.lookups)
        rows = [
            _RowInWork(row, plain, scope.with_row(plain, index))
            for index, (row, plain) in enumerate(zip(extracted.tables[table], data[table], strict=True))
        ]
        for name, expression in rule.computed.items():
            findings += _compute_column(extracted, table, name, expression, rows)
            scope.memory.clear()  # the rows have a column more
    for name, expression in mapping.computed.items():
        scope = Scope(data, mapping.lookups)
        value = single(expression.evaluate(scope))
        confidence = min(_confidences(extracted, expression.names), default=100)
        extracted.fields[name] = Value(value, "", f"computed.{name}", (), confidence)
        data[name] = value
        findings += [_miss(miss, name, f"computed.{name}", expression, extracted) for miss in scope.misses]
    return findings


def single(value: Scalar | list[Any]) -> Scalar:
    """A value; empty when it is a whole column, which no mapping that was checked can ask for."""
    return None if isinstance(value, list) else value


def _complete(table: str, rule: TableRule, rows: list[Row]) -> None:
    columns = {name: f"tables.{table}.columns.{name}" for name in rule.columns}
    columns |= {name: f"tables.{table}.notes.{name}" for name in rule.notes if name not in columns}
    for row in rows:
        for name, place in columns.items():
            if name not in row:
                row[name] = Value(None, "", place)


class _RowInWork(NamedTuple):
    """A row with its provenance, its plain values, and the scope that looks at them."""

    row: Row
    plain: dict[str, Any]
    scope: Scope


def _compute_column(
    extracted: Extracted, table: str, name: str, expression: Expression, rows: list[_RowInWork]
) -> list[Finding]:
    """One computed value for all rows, so that the next one can already sum it up."""
    rule = f"tables.{table}.computed.{name}"
    used = [used for used in expression.names if rows and used in rows[0].row]
    outside = min(_confidences(extracted, expression.names.difference(used)), default=100)
    missed: list[tuple[int, Miss]] = []
    for index, (row, plain, scope) in enumerate(rows):
        value = single(expression.evaluate(scope))
        confidence = outside
        for source in used:
            confidence = min(confidence, row[source].confidence)
        row[name] = Value(value, "", rule, (), confidence)
        plain[name] = value
        if scope.misses:
            missed += [(index, miss) for miss in scope.misses]
            scope.misses.clear()
    findings = [_miss(miss, name, rule, expression, extracted, table, index) for index, miss in missed[:MOST_FINDINGS]]
    if more := len(missed) - len(findings):
        message = f"there is no {name.replace('_', ' ')} for {more} more lines"
        findings.append(Finding(FaultCode.UNKNOWN_LOOKUP, message, None, rule, params={"kind": "more", "count": more}))
    return findings


def _confidences(extracted: Extracted, names: Iterable[str]) -> Iterable[int]:
    """Of fields, of all cells of a column, and of nothing else: a table as such is sure."""
    for name in names:
        table, _, column = name.partition(".")
        if column:
            yield from (row[column].confidence for row in extracted.tables.get(table, ()) if column in row)
        elif name in extracted.fields:
            yield extracted.fields[name].confidence


def _miss(
    miss: Miss,
    name: str,
    rule: str,
    expression: Expression,
    extracted: Extracted,
    table: str | None = None,
    index: int | None = None,
) -> Finding:
    """There is no such text in the look-up; the finding points to where the text stands."""
    row: Row = extracted.tables[table][index] if table is not None and index is not None else {}
    sources = {f"{table}[{index}].{used}": row[used] for used in sorted(expression.names) if used in row}
    sources |= {
        used: extracted.fields[used] for used in sorted(expression.names - row.keys()) if used in extracted.fields
    }
    # The very text, or else a value with a place: `lookup('units', trim(unit))` still comes from `unit`.
    path, value = min(
        sources.items(), key=lambda item: (item[1].value != miss.text, not item[1].places), default=(None, None)
    )
    place = value.places[0] if value and value.places else None
    line = None if index is None else index + 1
    return Finding(
        FaultCode.UNKNOWN_LOOKUP,
        f"{f'line {line}: ' if line else ''}there is no {name.replace('_', ' ')} for '{miss.text[:100]}'",
        path,
        rule,
        place.page if place else None,
        place.box if place else None,
        {"kind": "lookup", "lookup": miss.lookup, "text": miss.text[:100], "name": name}
        | ({"line": line} if line else {}),
    )
