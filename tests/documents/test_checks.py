"""Checks prove that a document is complete, or tell a clerk what is wrong and where."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from waybill_documents.checks import CheckResult, check
from waybill_documents.computed_values import compute
from waybill_documents.expressions.names import check_names
from waybill_documents.faults import FaultCode
from waybill_documents.geometry import Place
from waybill_documents.mapping.model import Mapping
from waybill_documents.values import Carry, Extracted, Value


def mapping(**checks: Any) -> Mapping:
    made = Mapping.model_validate(
        {
            "format": 1,
            "name": "test_v1",
            "title": "Test",
            "locale": {"base": "id"},
            "fields": {
                "subtotal": {"label": "Subtotal", "type": "decimal"},
                "row_count": {"label": "Rows", "type": "integer"},
                "buyer": {"label": "Buyer"},
                "issued": {"label": "Date", "type": "date"},
            },
            "tables": {
                "lines": {
                    "row": {"begins": "no"},
                    "columns": {
                        "no": {"header": "No", "type": "integer"},
                        "code": {"header": "Code"},
                        "quantity": {"header": "Qty", "type": "decimal"},
                        "price": {"header": "Price", "type": "decimal"},
                        "amount": {"header": "Amount", "type": "decimal"},
                    },
                    "notes": {"note": "^Note"},
                    "carry": {"column": "amount", "out": "Jumlah pindahan", "into": "Pindahan"},
                }
            },
            "checks": checks,
        }
    )
    check_names(made)
    return made


def extracted(count: int = 3, **fields: Any) -> Extracted:
    """Each line has 3 pieces at 12.500,00; page 2 begins with line 3."""
    rows = []
    for index in range(count):
        row: dict[str, Any] = {
            "no": index + 1,
            "code": f"A{index}",
            "quantity": Decimal(3),
            "price": Decimal("12500.00"),
            "amount": Decimal("37500.00"),
        }
        rows.append(
            {
                name: Value(
                    value, "", f"tables.lines.columns.{name}", (Place(1 + index // 2, (float(index), at, 9.0, 9.0)),)
                )
                for at, (name, value) in enumerate(row.items())
            }
        )
    known: dict[str, Any] = {"subtotal": count * Decimal("37500.00"), "row_count": count} | fields
    return Extracted(
        {name: Value(value, "", f"fields.{name}", (Place(9, (0.0, 0.0, 1.0, 1.0)),)) for name, value in known.items()},
        {"lines": rows},
    )  # fmt: skip


def run(rule: dict[str, Any], document: Extracted, carries: dict[str, list[Carry]] | None = None) -> CheckResult:
    made = mapping(rule=rule)
    assert compute(made, document) == []
    [result] = check(made, document, carries or {})
    return result


LINES = {"each": "lines", "expect": "round(quantity * price, 2) == amount"}


def test_a_line_that_does_not_add_up() -> None:
    document = extracted(214)
    document.tables["lines"][213]["amount"].value = Decimal("37050.00")
    result = run(LINES, document)
    assert result.passed is False
    [finding] = result.findings
    assert finding.code is FaultCode.CHECK_FAILED
    assert finding.message == "line 214: 3 × 12.500,00 is 37.500,00, the invoice says 37.050,00"
    assert finding.path == "lines[213].amount"
    assert finding.rule == "checks.rule"
    assert (finding.page, finding.box) == (107, (213.0, 4.0, 9.0, 9.0))
    assert finding.key == "check.calculation_in_row"
    assert finding.params == {
        "check": "checks.rule",
        "line": 214,
        "left": "37500.00",
        "right": "37050.00",
        "operator": "==",
        "difference": "450.00",
        "side": {
            "key": "check.side.result",
            "params": {"formula": ["3 × 12.500,00"], "value": "37500.00", "shown": {"value": "37.500,00"}},
        },
        "name": "lines.amount",
        "printed": "37050.00",
        "shown": {"left": "37.500,00", "right": "37.050,00", "difference": "450,00", "printed": "37.050,00"},
    }
    assert len(result.values) == 3 * 214
    assert result.doubted == ("lines[213].amount", "lines[213].price", "lines[213].quantity")


@pytest.mark.parametrize(
    ("expect", "message", "path"),
    [
        (
            "sum(lines.amount) == subtotal",
            "the sum of amount is 112.500,00, the invoice says subtotal 1.010,00",
            "subtotal",
        ),
        (
            "subtotal == sum(lines.amount) ± 0.01",
            "the sum of amount is 112.500,00, the invoice says subtotal 1.010,00",
            "subtotal",
        ),
        ("count(lines) == row_count", "the number of lines is 3, the invoice says row count 4", "row_count"),
        (
            "subtotal * (1 + 11 / 100) - 1 == row_count",
            "1.010,00 × (1 + 11 ÷ 100) − 1 is 1.120,10, the invoice says row count 4",
            "row_count",
        ),
        ("subtotal == row_count", "subtotal is 1.010,00, but row count is 4", "row_count"),
        ("subtotal / 3 == row_count", "1.010,00 ÷ 3 is 336,666667, the invoice says row count 4", "row_count"),
        (
            "-(subtotal - (row_count - 1)) == row_count * (2 / 1)",
            "−(1.010,00 − (4 − 1)) is -1.007,00, but 4 × (2 ÷ 1) is 8",
            "subtotal",
        ),
        ("subtotal == 5", "subtotal is 1.010,00, it should be 5", "subtotal"),
        ("5 == subtotal", "subtotal is 1.010,00, which does not match 5", "subtotal"),
        ("row_count >= subtotal", "row count is 4, it should be at least subtotal, 1.010,00", "subtotal"),
        ("row_count < 2 + 1", "row count is 4, it should be less than 3", "row_count"),
        ("buyer == 'PT Maju'", "buyer is 'PT Mundur', it should be 'PT Maju'", "buyer"),
        ("issued >= '2025-01-01'", "there is no issued", None),
        ("not empty(issued)", "there is no issued", None),
        ("subtotal / 0 == 1", "1.010,00 ÷ 0 has no value, it should be 1", "subtotal"),
        ("matches(buyer, '^X')", "rule does not hold: matches(buyer, '^X')", "buyer"),
        ("unique(lines.price)", "price 12.500,00 is in line 1 and again in line 2", "lines[1].price"),
    ],
)
def test_what_a_clerk_is_told(expect: str, message: str, path: str | None) -> None:
    document = extracted(subtotal=Decimal("1010.00"), row_count=4, buyer="PT Mundur")
    result = run({"expect": expect}, document)
    assert result.passed is False
    assert (result.findings[0].message, result.findings[0].path) == (message, path)


def test_every_part_that_does_not_hold_is_told() -> None:
    document = extracted(subtotal=Decimal(1), row_count=4)
    result = run(
        {"expect": "count(lines) == row_count and count(lines) == 3 and sum(lines.amount) == subtotal"}, document
    )
    assert [finding.path for finding in result.findings] == ["row_count", "subtotal"]


def test_a_choice_is_told_by_what_was_chosen() -> None:
    document = extracted(row_count=4)
    result = run({"expect": "if(row_count > 3, count(lines) == row_count, subtotal == 0)"}, document)
    assert result.findings[0].message == "the number of lines is 3, the invoice says row count 4"


def test_a_missing_value_does_not_pass_and_points_to_its_line() -> None:
    document = extracted()
    document.tables["lines"][1]["price"].value = None
    document.tables["lines"][1]["price"].places = ()
    result = run(LINES, document)
    [finding] = result.findings
    assert finding.message == "line 2: there is no price"
    assert finding.path == "lines[1].price"
    assert (finding.page, finding.box) == (1, (1.0, 0.0, 9.0, 9.0)), "what stands in the same line"


def test_when_decides_whether_it_applies() -> None:
    assert run({"expect": "row_count == 4", "when": "subtotal == 0"}, extracted()).passed is None
    document = extracted()
    document.tables["lines"].append({"note": Value("Note", "Note", "tables.lines.notes.note")})
    result = run(LINES | {"when": "not empty(quantity)"}, document)
    assert result.passed is True
    assert "lines[3].amount" not in result.values
    assert run(LINES, extracted(0)).passed is None


def test_a_running_number_that_is_missing() -> None:
    document = extracted(230)
    for index in range(213, 230):
        document.tables["lines"][index]["no"].value = index + 2
    [finding] = run({"expect": "running(lines.no)"}, document).findings
    assert finding.message == "the line numbers jump from 213 to 215"
    assert finding.path == "lines[213].no"
    assert finding.page == 107


@pytest.mark.parametrize(
    ("numbers", "messages"),
    [
        ([2, 3], ["the line numbers start at 2, not at 1"]),
        ([1, 2, 2, 3], ["the line numbers go back from 2 to 2"]),
        ([1, 4, 5, 9], ["the line numbers jump from 1 to 4", "the line numbers jump from 5 to 9"]),
        ([None, None], ["no line has a no"]),
        ([1, None, 2], []),
    ],
)
def test_running_numbers(numbers: list[int | None], messages: list[str]) -> None:
    document = extracted(len(numbers))
    for row, number in zip(document.tables["lines"], numbers, strict=True):
        row["no"].value = number
    result = run({"expect": "running(lines.no)"}, document)
    assert [finding.message for finding in result.findings] == messages
    assert result.passed is (not messages)


def test_at_most_twenty_are_told_in_full() -> None:
    document = extracted(60)
    for row in document.tables["lines"][:57]:
        row["amount"].value = Decimal(1)
    result = run(LINES, document)
    assert len(result.findings) == 21
    assert result.findings[-1].message == "rule: there are 37 more like these"
    assert result.findings[-1].key == "check.more"
    assert result.findings[-1].params == {"check": "checks.rule", "count": 37}
    assert len(result.doubted) == 3 * 57

    for row in document.tables["lines"][:57]:
        row["no"].value = 7
    result = run({"expect": "running(lines.no)"}, document)
    assert len(result.findings) == 21
    exactly = extracted(20)
    for row in exactly.tables["lines"]:
        row["amount"].value = Decimal(1)
    assert len(run(LINES, exactly).findings) == 20


def test_the_mappings_own_words() -> None:
    document = extracted()
    document.tables["lines"][1]["amount"].value = Decimal("37050.00")
    [finding] = run(
        LINES
        | {
            "message": {
                "en": "line {line}: {left} is not {amount} ({difference}, {subtotal}, {__class__}, {0})",
                "id": "baris {line}: {quantity} × {price} bukan {right}",
            }
        },
        document,
    ).findings
    assert finding.message == "line 2: 37.500,00 is not 37.050,00 (450,00, 112.500,00, {__class__}, {0})"
    assert finding.params["messages"]["id"] == "baris 2: 3 × 12.500,00 bukan 37.050,00"
    [finding] = run(LINES | {"message": {"id": "salah"}}, document).findings
    assert finding.message == "line 2: 3 × 12.500,00 is 37.500,00, the invoice says 37.050,00"
    assert finding.params["messages"] == {"id": "salah"}


def carry(page: int, direction: Any, amount: str, after_rows: int) -> Carry:
    return Carry(page, direction, Decimal(amount), after_rows, Place(page, (5.0, 5.0, 6.0, 6.0)), amount)


CARRIED = {"expect": "carried('lines')"}


def test_sums_that_pages_carry_over() -> None:
    right = [
        carry(1, "out", "75000.00", 2),
        carry(2, "into", "75000", 2),
        carry(2, "out", "150000.00", 4),
        carry(3, "into", "150000.00", 4),
    ]
    result = run(CARRIED, extracted(5), {"lines": right})
    assert result.passed is True
    assert result.values == tuple(f"lines[{index}].amount" for index in range(5))


def test_where_nothing_is_carried_and_nothing_must_be_there_is_nothing_to_check() -> None:
    one_page = run(CARRIED, extracted(2))
    assert (one_page.passed, one_page.values) == (None, ())
    without_pages = extracted(5)
    for row in without_pages.tables["lines"]:
        for value in row.values():
            value.places = ()
    assert run(CARRIED, without_pages).passed is None
    assert run({"expect": "running(lines.no) and carried('lines')"}, extracted(2)).passed is None
    wrong = extracted(2)
    wrong.tables["lines"][1]["no"].value = 7
    assert run({"expect": "running(lines.no) and carried('lines')"}, wrong).passed is False


def test_a_page_that_carries_no_sum_proves_nothing() -> None:
    result = run(CARRIED, extracted(5), {"lines": [carry(1, "out", "75000.00", 2), carry(2, "into", "75000.00", 2)]})
    [finding] = result.findings
    assert finding.message == "page 2 carries no sum forward, although the table continues after it"
    assert finding.page == 2
    assert [finding.page for finding in run(CARRIED, extracted(5)).findings] == [1, 2]


def test_the_number_of_pages_is_known_where_there_are_any() -> None:
    rule = {"expect": "row_count == pages", "when": "not empty(pages)"}
    document = extracted(3)
    assert run(rule, document).passed is None
    document.pages = 3
    assert run(rule, document).passed is True
    document.pages = 4
    result = run(rule, document)
    assert result.findings[0].message == "row count is 3, but pages is 4"
    assert result.values == ("row_count",)


def test_a_page_that_is_missing_breaks_the_sums() -> None:
    result = run(CARRIED, extracted(3), {"lines": [carry(1, "out", "75000.00", 2), carry(3, "into", "150000.00", 2)]})
    [finding] = result.findings
    assert finding.message == "page 3 brings in 150.000,00, but page 1 carries 75.000,00 forward"
    assert (finding.page, finding.box, finding.path) == (3, (5.0, 5.0, 6.0, 6.0), "lines[1].amount")
    assert finding.key == "check.carry.different"
    assert finding.params == {
        "check": "checks.rule",
        "page": 3,
        "carried": "150000.00",
        "out": "75000.00",
        "out_page": 1,
        "shown": {"carried": "150.000,00", "out": "75.000,00"},
    }


def test_a_line_that_is_missing_breaks_the_sums() -> None:
    result = run(CARRIED, extracted(3), {"lines": [carry(1, "out", "112500.00", 2), carry(2, "into", "112500.00", 2)]})
    [finding] = result.findings
    assert finding.message == "page 1 carries 112.500,00 forward, the lines up to there add up to 75.000,00"


def test_a_sum_that_comes_from_nowhere() -> None:
    finding, *_ = run(CARRIED, extracted(3), {"lines": [carry(2, "into", "75000.00", 2)]}).findings
    assert finding.message == "page 2 brings in 75.000,00, but no page before it carries a sum forward"


def test_results_as_json() -> None:
    document = extracted()
    document.tables["lines"][1]["amount"].value = Decimal("37050.00")
    result = run({"expect": "sum(lines.amount) == subtotal", "required": False}, document)
    json = result.to_json()
    assert json["name"] == "rule"
    assert json["passed"] is False
    assert json["required"] is False
    assert json["values"] == ["lines[*].amount", "subtotal"]
    assert json["findings"][0]["page"] == 9
    assert json["findings"][0]["message"] == "the sum of amount is 112.050,00, the invoice says subtotal 112.500,00"
