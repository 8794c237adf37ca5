"""Computed values are made in order, have a confidence, and report texts that have no value."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill_documents.computed_values import compute
from waybill_documents.expressions import Expression, Scope
from waybill_documents.faults import FaultCode
from waybill_documents.geometry import Place
from waybill_documents.mapping.model import Mapping
from waybill_documents.messages import tell
from waybill_documents.values import Extracted, Scalar, Value

PLACE = Place(2, (1.0, 2.0, 3.0, 4.0))


def mapping(table: dict[str, str] | None = None, document: dict[str, str] | None = None) -> Mapping:
    return Mapping.model_validate(
        {
            "format": 1,
            "name": "test_v1",
            "title": "Test",
            "locale": {"base": "id"},
            "fields": {
                "rate": {"label": "Rate", "type": "decimal"},
                "discount": {"label": "Discount", "type": "decimal"},
            },
            "tables": {
                "lines": {
                    "row": {"begins": "quantity"},
                    "columns": {
                        "quantity": {"header": "Qty", "type": "decimal"},
                        "price": {"header": "Price", "type": "decimal"},
                        "unit": {"header": "Unit"},
                        "discount": {"header": "Discount", "type": "decimal", "optional": True},
                    },
                    "computed": table or {},
                }
            },
            "lookups": {"units": {"kg": "UM.0003", "pcs": "UM.0021"}},
            "computed": document or {},
        }
    )


def cell(value: Scalar, confidence: int = 100) -> Value:
    return Value(value, str(value), "tables.lines.columns.x", (PLACE,), confidence)


def extracted(*units: str) -> Extracted:
    rows = [
        {"quantity": cell(Decimal(number)), "price": cell(Decimal("2.50"), 90), "unit": cell(unit)}
        for number, unit in enumerate(units, start=1)
    ]
    fields = {"rate": Value(Decimal(11), "11", "fields.rate", (PLACE,), 80), "discount": cell(Decimal(99))}
    return Extracted(fields, {"lines": rows})


def column(document: Extracted, name: str) -> list[Any]:
    return [row[name].value for row in document.tables["lines"]]


def test_rows_first_then_the_document_each_in_order() -> None:
    document = extracted("kg", "pcs")
    findings = compute(
        mapping(
            {
                "gross": "quantity * price",
                "share": "round(gross / sum(lines.gross), 3)",
                "code": "lookup('units', unit)",
            },
            {"net": "sum(lines.gross)", "tax": "round(net * rate / 100, 2)"},
        ),
        document,
    )
    assert findings == []
    assert column(document, "gross") == [Decimal("2.50"), Decimal("5.00")]
    assert column(document, "share") == [Decimal("0.333"), Decimal("0.667")]
    assert column(document, "code") == ["UM.0003", "UM.0021"]
    assert document.fields["net"].value == Decimal("7.50")
    assert document.fields["tax"].value == Decimal("0.83")


def test_a_computed_value_is_as_sure_as_what_it_was_made_from() -> None:
    document = extracted("kg", "pcs")
    document.tables["lines"][1]["quantity"].confidence = 40
    compute(
        mapping(
            {"gross": "quantity * price", "taxed": "quantity * rate", "one": "1"},
            {"net": "sum(lines.gross)", "n": "count(lines)"},
        ),
        document,
    )
    first, second = document.tables["lines"]
    assert first["gross"] == Value(Decimal("2.50"), "", "tables.lines.computed.gross", (), 90)
    assert second["gross"].confidence == 40
    assert first["taxed"].confidence == 80
    assert first["one"].confidence == 100
    assert document.fields["net"] == Value(Decimal("7.50"), "", "computed.net", (), 40)
    assert document.fields["n"].confidence == 100


def test_a_column_that_is_missing_is_empty_and_not_the_field_of_the_same_name() -> None:
    document = extracted("kg")
    compute(mapping({"net": "quantity * price - discount", "safe": "price - coalesce(discount, 0)"}), document)
    assert column(document, "net") == [None]
    assert column(document, "safe") == [Decimal("2.50")]
    assert document.tables["lines"][0]["discount"] == Value(None, "", "tables.lines.columns.discount")
    assert document.fields["discount"].value == Decimal(99)


def test_a_text_that_a_lookup_lacks_is_a_finding_that_names_the_line() -> None:
    document = extracted("kg", "pcs", "zak")
    [finding] = compute(mapping({"unit_code": "lookup('units', trim(unit))"}), document)
    assert finding.code is FaultCode.UNKNOWN_LOOKUP
    assert finding.message == "line 3: there is no unit code for 'zak'"
    assert finding.path == "lines[2].unit"
    assert finding.rule == "tables.lines.computed.unit_code"
    assert (finding.page, finding.box) == (2, (1.0, 2.0, 3.0, 4.0))
    assert finding.key == "lookup.unknown"
    assert finding.params == {
        "lookup": "units",
        "text": "zak",
        "name": "tables.lines.computed.unit_code",
        "line": 3,
    }
    assert column(document, "unit_code") == ["UM.0003", "UM.0021", None]


def test_a_lookup_of_the_document() -> None:
    document = extracted()
    [finding] = compute(mapping(None, {"rate_code": "lookup('units', rate)"}), document)
    assert finding.message == "there is no rate code for '11'"
    assert finding.path == "rate"
    assert document.fields["rate_code"].value is None


def test_many_unknown_texts_are_told_once() -> None:
    findings = compute(mapping({"code": "lookup('units', unit)"}), extracted(*["zak"] * 500))
    assert len(findings) == 21
    assert findings[-1].message == "there is no code for 480 more lines"


def test_a_table_that_is_not_there_is_an_empty_one() -> None:
    document = Extracted({}, {})
    assert compute(mapping({"gross": "quantity * price"}, {"net": "sum(lines.gross)"}), document) == []
    assert document.tables == {"lines": []}
    assert document.fields["net"].value == Decimal(0)


# Printed texts


def test_a_text_is_read_as_the_document_prints_it() -> None:
    document = extracted("12.500,50", "Rp 3", "1")
    assert compute(mapping({"size": "read_number(unit)"}, {"all": "sum(lines.size)"}), document) == []
    assert column(document, "size") == [Decimal("12500.50"), Decimal(3), Decimal(1)]
    assert document.fields["all"].value == Decimal("12504.50")


def test_a_text_that_cannot_be_read_is_a_finding_at_its_place() -> None:
    document = extracted("7 Agustus 2025", "soon", "8 Agustus 2025")
    [finding] = compute(mapping({"due": "read_date(unit)"}), document)
    assert (finding.code, finding.path, finding.page) == (FaultCode.BAD_VALUE, "lines[1].unit", 2)
    assert finding.message == "line 2: due: 'soon' is not a date such as 7 Agustus 2025"
    assert tell(finding, "id").startswith("baris 2: due: ")
    assert column(document, "due") == [date(2025, 8, 7), None, date(2025, 8, 8)]


def test_unreadable_texts_are_counted_beyond_the_first_ones() -> None:
    findings = compute(mapping({"due": "read_date(unit)"}), extracted(*["soon"] * 23))
    assert [finding.message for finding in findings[20:]] == ["due cannot be read in 3 more lines"]


def test_an_alternative_for_an_unreadable_text_is_no_finding() -> None:
    document = extracted("soon")
    assert compute(mapping({"due": "coalesce(read_date(unit), read_date('1 Mei 2025'))"}), document) == []
    assert column(document, "due") == [date(2025, 5, 1)]


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("Order 4711/A", "[0-9]+", "4711"),
        ("Order 4711/A", "Order ([0-9]+)/(.)", "4711"),
        ("Order 4711/A", "^[0-9]+", None),
        ("Order 4711/A", "Order(x)?", None),
        ("", "^$", ""),
    ],
)
def test_a_part_of_a_text_is_extracted_or_nothing(text: str, pattern: str, expected: str | None) -> None:
    assert Expression(f"extract(x, '{pattern}')").evaluate(Scope({"x": text})) == expected


@given(st.text(max_size=30), st.sampled_from(["a+", "(a)b?", "^x", "[0-9]{2}", "()"]))
def test_what_is_extracted_is_part_of_the_text(text: str, pattern: str) -> None:
    scope = Scope({"x": text})
    found = Expression(f"extract(x, '{pattern}')").evaluate(scope)
    matched = Expression(f"matches(x, '{pattern}')").evaluate(scope)
    assert (found is not None) is (matched is True)
    assert found is None or (isinstance(found, str) and found in text)
