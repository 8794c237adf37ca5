"""Paths of values are kept by column, and read like a tuple of texts."""

from __future__ import annotations

from decimal import Decimal

from waybill_documents.value_paths import ValueGroup, ValuePaths, column_paths
from waybill_documents.values import Extracted, Value

PATHS = ValuePaths([ValueGroup("net"), ValueGroup("amount", "lines", [0, 2]), ValueGroup("no", "lines", range(1))])
SPELLED = ("net", "lines[0].amount", "lines[2].amount", "lines[0].no")


def test_they_are_texts_in_order() -> None:
    assert tuple(PATHS) == SPELLED
    assert len(PATHS) == 4
    assert PATHS[1:3] == ("lines[0].amount", "lines[2].amount")
    assert SPELLED == PATHS
    assert ValuePaths([]) == ()


def test_a_column_is_written_once_however_it_was_given() -> None:
    assert column_paths(PATHS) == column_paths(SPELLED) == ["net", "lines[*].amount", "lines[*].no"]


def test_values_are_found_and_missing_ones_are_none() -> None:
    net, first = Value(Decimal(1), "1", "fields.net"), Value(Decimal(2), "2", "tables.lines.columns.amount")
    extracted = Extracted({"net": net}, {"lines": [{"amount": first}, {}, {}]})
    assert list(PATHS.values(extracted)) == [net, first, None, None]
