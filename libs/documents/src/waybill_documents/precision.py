"""Refuses numbers that are printed with more decimals than they may have, before anything is computed from them.

`12,500` is twelve and a half in one country and twelve and a half thousand in another. If an invoice is read by the
wrong convention, every amount is off by a factor of a thousand and all sums still agree, so no check notices. The
number of decimals gives it away.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from waybill_documents.expressions.numbers import places
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.mapping.model import ColumnRule, FieldRule, Mapping
from waybill_documents.messages import DocumentMessage
from waybill_documents.values import Extracted, Value

_WHOLE = Decimal(1)
"""Has no decimals, like most amounts in many currencies."""


def refuse_too_precise(mapping: Mapping, extracted: Extracted) -> Iterator[Finding]:
    """A finding for every decimal with more digits than its `decimals`. The value becomes empty, as if unreadable."""
    for name, rule in mapping.fields.items():
        if name in extracted.fields:
            yield from _refused(extracted.fields[name], rule, name, f"fields.{name}", None)
    for table, its in mapping.tables.items():
        limited = [
            (name, column, column.decimals) for name, column in its.columns.items() if column.decimals is not None
        ]
        for index, row in enumerate(extracted.tables.get(table, ())):
            for name, column, most in limited:
                # The same as in `too_precise`, without a call for every cell.
                value = row[name].value if name in row else None
                if type(value) is Decimal and not value.same_quantum(_WHOLE) and places(value) > most:
                    where = f"tables.{table}.columns.{name}"
                    yield from _refused(row[name], column, f"{table}[{index}].{name}", where, index + 1)


def too_precise(value: object, decimals: int | None, printed: str) -> DocumentMessage | None:
    """A message if a number has more decimals than it may have."""
    if decimals is None or not isinstance(value, Decimal) or places(value) <= decimals:
        return None
    if decimals == 0:
        return DocumentMessage("number.decimals_not_allowed", printed=printed[:60], decimals=places(value))
    return DocumentMessage("number.too_many_decimals", printed=printed[:60], decimals=places(value), most=decimals)


def _refused(value: Value, rule: FieldRule | ColumnRule, path: str, where: str, line: int | None) -> Iterator[Finding]:
    why = too_precise(value.value, rule.decimals, value.raw)
    if why is None:
        return
    value.value, value.confidence = None, 0
    place = value.places[0] if value.places else None
    message = DocumentMessage("value.too_precise", name=path, why=why, line=line)
    yield Finding.at(place, FaultCode.BAD_VALUE, message, path, where)
