"""A mapping with meaningless expressions is refused when it is loaded, with the place and a hint."""

from __future__ import annotations

from typing import Any

import pytest

from waybill_documents.expressions.names import check_names
from waybill_documents.faults import MappingFault
from waybill_documents.mapping.model import Mapping


def mapping(**changes: Any) -> Mapping:
    whole: dict[str, Any] = {
        "format": 1,
        "name": "test_v1",
        "title": "Test",
        "fields": {
            "number": {"label": "No"},
            "to": {"label": "To"},
            "date": {"label": "Date", "type": "date"},
            "subtotal": {"label": "Subtotal", "type": "decimal"},
            "discount": {"label": "Discount", "type": "decimal"},
        },
        "tables": {
            "lines": {
                "row": {"begins": "no"},
                "columns": {
                    "no": {"header": "No", "type": "integer"},
                    "name": {"header": "Name"},
                    "unit": {"header": "Unit"},
                    "quantity": {"header": "Qty", "type": "decimal"},
                    "price": {"header": "Price", "type": "decimal"},
                    "discount": {"header": "Discount", "type": "decimal", "optional": True},
                    "amount": {"header": "Amount", "type": "decimal", "required": True},
                },
                "notes": {"note": "^Note"},
                "carry": {"column": "amount", "out": "Carried", "into": "Brought"},
                "computed": {
                    "gross": "quantity * price",
                    "share": "gross / sum(lines.gross)",
                    "service": "contains(name, '(Jasa)')",
                },
            }
        },
        "lookups": {"units": {"kg": "KGM"}},
        "computed": {"tax": "round(subtotal * 11 / 100, 2)", "total": "subtotal + tax"},
        "checks": {
            "sum": {"expect": "sum(lines.amount) == subtotal ± 0.01"},
            "lines": {
                "each": "lines",
                "expect": "round(quantity * price - coalesce(discount, 0), 2) == amount",
                "when": "not empty(quantity) and not service",
                "message": "line {line}: {quantity} x {price} is {left}, not {amount}; see {number}",
            },
            "complete": {"expect": "running(lines.no) and carried('lines') and count(lines) == last(lines.no)"},
        },
        "xml": {
            "root": {
                "name": "Invoice",
                "children": [
                    {"name": "Date", "value": "date(date, 'yyyy-MM-dd')"},
                    {
                        "name": "Line",
                        "each": "lines",
                        "children": [
                            {"name": "Unit", "value": "lookup('units', unit)", "attributes": {"no": "no"}},
                            {"name": "Opt", "value": "if(service, 'B', 'A')", "when": "amount > 0"},
                        ],
                    },
                ],
            }
        },
    }
    return Mapping.model_validate(whole | changes)


def test_a_mapping_that_makes_sense_is_accepted() -> None:
    check_names(mapping())


def xml(value: str, **more: Any) -> dict[str, Any]:
    return {"xml": {"root": {"name": "A", "children": [{"name": "B", "value": value, **more}]}}}


@pytest.mark.parametrize(
    ("changes", "where", "message"),
    [
        ({"computed": {"x": "foo"}}, "computed.x", "there is no field or column called 'foo'"),
        (
            {"computed": {"x": "spread(subtotal, lines.amount)"}},
            "computed.x",
            "spread distributes over the rows of a table, and this is not a row with 'lines.amount'",
        ),
        (
            {"computed": {"x": "subtotl"}},
            "computed.x",
            "there is no field or column called 'subtotl'; did you mean 'subtotal'?",
        ),
        (
            {"computed": {"x": "sum(lines.amout)"}},
            "computed.x",
            "there is no field or column called 'lines.amout'; did you mean 'lines.amount'?",
        ),
        (
            {"computed": {"x": "quantity"}},
            "computed.x",
            "there is no field or column called 'quantity'; did you mean 'lines.quantity'?",
        ),
        (
            {"computed": {"x": "y", "y": "1"}},
            "computed.x",
            "'y' is not computed yet; values are computed in order, rows first",
        ),
        ({"computed": {"x": "x"}}, "computed.x", "'x' is not computed yet; values are computed in order, rows first"),
        ({"computed": {"subtotal": "1"}}, "computed.subtotal", "fields has a 'subtotal' already"),
        ({"computed": {"lines": "1"}}, "computed.lines", "tables has a 'lines' already"),
        (
            {"computed": {"x": "lookup('unit', number)"}},
            "computed.x",
            "there is no look-up called 'unit'; did you mean 'units'?",
        ),
        (
            {"checks": {"x": {"expect": "carried('line')"}}},
            "checks.x",
            "there is no table called 'line' that carries sums",
        ),
        (
            {"checks": {"x": {"expect": "amount > 0"}}},
            "checks.x",
            "there is no field or column called 'amount'; did you mean 'lines.amount'?",
        ),
        (
            {"checks": {"x": {"expect": "amount > 0", "each": "line"}}},
            "checks.x",
            "there is no table called 'line'; did you mean 'lines'?",
        ),
        (
            {"checks": {"x": {"expect": "subtotal > 0", "message": "{subtotal} {foo}"}}},
            "checks.x.message",
            "there is no field or column called 'foo'",
        ),
        (
            {"checks": {"x": {"expect": "subtotal > 0", "when": "discount"}}},
            "checks.x.when",
            "discount is a number, but a condition is needed here; compare it, or write not empty(…) (at character 1)",
        ),
        (
            {"checks": {"x": {"expect": "subtotal"}}},
            "checks.x",
            "subtotal is a number, but a condition is needed here; compare it, or write not empty(…) (at character 1)",
        ),
        (
            {"computed": {"x": "1 + to"}},
            "computed.x",
            (
                "to is a text, but a number is needed here; give it the type decimal, or write read_number(…)"
                " (at character 5)"
            ),
        ),
        (
            {"computed": {"x": "lines.no * 2"}},
            "computed.x",
            "lines.no is a column, but a number is needed here; write sum(…), or compute it by row (at character 1)",
        ),
        (
            {"computed": {"x": "lines.amount"}},
            "computed.x",
            "lines.amount is a column, but a value is needed here (at character 1)",
        ),
        ({"computed": {"x": "lines"}}, "computed.x", "lines is a table, but a value is needed here (at character 1)"),
        (
            {"computed": {"x": "sum(subtotal)"}},
            "computed.x",
            "sum takes a column, as in sum(lines.amount) (at character 5)",
        ),
        (
            {"computed": {"x": "count(subtotal)"}},
            "computed.x",
            "count takes a table, as in count(lines) (at character 7)",
        ),
        (
            {"checks": {"x": {"expect": "number == 1"}}},
            "checks.x",
            "a text cannot be compared with a number (at character 1)",
        ),
        (
            {"checks": {"x": {"expect": "date > 5"}}},
            "checks.x",
            "a date cannot be compared with a number (at character 1)",
        ),
        (
            {"checks": {"x": {"expect": "date == '2025-01-01' ± 1"}}},
            "checks.x",
            "date is a date, but a number is needed here (at character 1)",
        ),
        (
            {"computed": {"x": "date(subtotal, 'yyyy')"}},
            "computed.x",
            "subtotal is a number, but a date is needed here (at character 6)",
        ),
        (xml("foo"), "xml.A.B", "there is no field or column called 'foo'"),
        (xml("1", attributes={"c": "foo"}), "xml.A.B@c", "there is no field or column called 'foo'"),
        (xml("1", each="foo"), "xml.A.B", "there is no table called 'foo'"),
        (xml("1", when="foo"), "xml.A.B.when", "there is no field or column called 'foo'"),
        (
            {"fields": {"and": {"label": "And"}}},
            "fields",
            "'and' is a word of the expression language; choose another name",
        ),
    ],
)
def test_what_cannot_mean_anything_is_refused(changes: dict[str, Any], where: str, message: str) -> None:
    with pytest.raises(MappingFault) as fault:
        check_names(mapping(**changes))
    assert (fault.value.where, fault.value.message) == (where, message)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"row": {"begins": "nr"}}, "tables.lines.row.begins"),
        ({"carry": {"column": "total", "out": "a", "into": "b"}}, "tables.lines.carry.column"),
        ({"carry": {"column": "name", "out": "a", "into": "b"}}, "tables.lines.carry.column"),
        ({"computed": {"amount": "1"}}, "tables.lines.computed.amount"),
        ({"computed": {"x": "y", "y": "x"}}, "tables.lines.computed.x"),
        ({"computed": {"x": "total"}}, "tables.lines.computed.x"),
    ],
)
def test_what_a_table_cannot_mean_is_refused(changes: dict[str, Any], where: str) -> None:
    whole = mapping().model_dump()
    whole["tables"]["lines"] |= changes
    with pytest.raises(MappingFault) as fault:
        check_names(Mapping.model_validate(whole))
    assert fault.value.where == where
