"""Numbers printed more precisely than they may be: the first look at what was read, before anything is computed.

`12,500` is twelve and a half in one country and twelve and a half thousand in another. Read by the wrong one, a whole
invoice is off by a thousand and every sum of it comes out right, so no check can tell; the digits can.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from waybill_documents.expressions.numbers import places
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.mapping.model import ColumnRule, FieldRule, Mapping
from waybill_documents.values import Extracted, Value


def refuse_too_precise(mapping: Mapping, extracted: Extracted) -> Iterator[Finding]:
    """A finding for every decimal with more digits than its `decimals`; it is empty afterwards, as if unreadable."""
    for name, rule in mapping.fields.items():
        if name in extracted.fields:
            yield from _refused(extracted.fields[name], rule, name, f"fields.{name}", None)
    for table, its in mapping.tables.items():
        limited = [(name, column) for name, column in its.columns.items() if column.decimals is not None]
        for index, row in enumerate(extracted.tables.get(table, ())):
            for name, column in limited:
                if name in row:
                    where = f"tables.{table}.columns.{name}"
                    yield from _refused(row[name], column, f"{table}[{index}].{name}", where, index + 1)


def too_precise(value: object, decimals: int | None) -> str | None:
    """What is wrong with a number of more digits than may be printed, as the end of a sentence; None if nothing is."""
    if decimals is None or not isinstance(value, Decimal) or places(value) <= decimals:
        return None
    most = f"at most {decimals}" if decimals else "none"
    return f"has {places(value)} digits after the decimal sign, where {most} may stand"


def _refused(value: Value, rule: FieldRule | ColumnRule, path: str, where: str, line: int | None) -> Iterator[Finding]:
    why = too_precise(value.value, rule.decimals)
    if why is None:
        return
    value.value, value.confidence = None, 0
    name = path.rpartition(".")[2]
    place = value.places[0] if value.places else None
    yield Finding(
        FaultCode.BAD_VALUE,
        f"{f'line {line}: ' if line else ''}{name}: '{value.raw[:60]}' {why}",
        path,
        where,
        place.page if place else None,
        place.box if place else None,
        {"kind": "decimals", "name": name, "printed": value.raw[:60], "most": rule.decimals}
        | ({"line": line} if line else {}),
    )
