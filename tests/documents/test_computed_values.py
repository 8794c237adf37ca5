"""Computed values are made in order, have a confidence, and report texts that a look-up lacks."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from waybill_documents.computed_values import compute
from waybill_documents.faults import FaultCode
from waybill_documents.geometry import Place
from waybill_documents.mapping.model import Mapping
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
