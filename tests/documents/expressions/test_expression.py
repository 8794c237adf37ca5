"""The expression language: the value of each construct, and the mistakes it refuses."""

from __future__ import annotations

import copy
import pickle
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from waybill_documents.expressions import FUNCTIONS, Expression, ExpressionError, Miss, Scope
from waybill_documents.expressions.numbers import places

DATA: dict[str, Any] = {
    "net": Decimal("100.10"),
    "count_printed": 3,
    "buyer": "PT Maju",
    "issued": date(2025, 8, 7),
    "paid": True,
    "nothing": None,
    "blank": "",
    "discount": Decimal(9),
    "lines": [
        {"no": 1, "amount": Decimal("10.50"), "unit": "Kg", "discount": None},
        {"no": 2, "amount": None, "unit": "kg", "discount": None},
        {"no": 3, "amount": Decimal("0.25"), "unit": None, "discount": Decimal(1)},
    ],
    "none": [],
}
LOOKUPS = {"units": {"KG": "UM.0003", "Lusin  besar": "UM.0017"}, "any": {"a": "A", "*": "other"}}


def value(text: str, row: dict[str, Any] | None = None) -> Any:
    return Expression(text).evaluate(Scope(DATA, LOOKUPS, row))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Arithmetic
        ("1 + 2 * 3", Decimal(7)),
        ("(1 + 2) * 3", Decimal(9)),
        ("10 - 2 - 3", Decimal(5)),
        ("8 / 4 / 2", Decimal(1)),
        ("-net", Decimal("-100.10")),
        ("--2", Decimal(2)),
        ("2 * -3", Decimal(-6)),
        ("2 - -3", Decimal(5)),
        ("count_printed * 2", Decimal(6)),
        ("0.1 + 0.2 == 0.3", True),
        ("nothing + 1", None),
        ("1 / 0", None),
        ("0 / 0", None),
        ("buyer + 1", None),
        ("paid + 1", None),
        ("issued + 1", None),
        ("lines.amount + 1", None),
        ("precision(net)", Decimal("0.01")),
        ("precision(count_printed)", Decimal(1)),
        ("precision(1.5)", Decimal("0.1")),
        ("precision(nothing)", None),
        # Comparisons
        ("net == 100.1", True),
        ("net == 100 ± 0.1", True),
        ("net == 100 +- 0.09", False),
        ("net != 100 ± 0.1", False),
        ("net != 100 ± 0.09", True),
        ("1 < 2 and 2 <= 2 and 3 > 2 and 2 >= 2", True),
        ("buyer == 'PT Maju'", True),
        ("buyer == 'pt maju'", False),
        ("'it''s' == 'it''s'", True),
        ("issued == '2025-08-07'", True),
        ("issued >= '2025-08-08'", False),
        ("issued >= 'tomorrow'", None),
        ("buyer == 1", None),
        ("buyer != 1", None),
        ("nothing == nothing", None),
        ("nothing == 1", None),
        ("nothing != 1", None),
        ("nothing == ''", True),
        ("'' == blank", True),
        ("net == ''", False),
        ("net != ''", True),
        ("nothing != ''", False),
        ("net == 1 ± nothing", None),
        ("buyer == 'PT Maju' ± 1", None),
        # Conditions have three values
        ("not (1 > 2)", True),
        ("not (nothing > 2)", None),
        ("nothing > 2 or 1 < 2", True),
        ("nothing > 2 or 1 > 2", None),
        ("nothing > 2 and 1 > 2", False),
        ("nothing > 2 and 1 < 2", None),
        ("1 < 2 or 1 / 0 > 1", True),
        ("net and paid", None),
        # Numbers
        ("round(2.5)", Decimal(3)),
        ("round(-2.5)", Decimal(-3)),
        ("round(1.005, 2)", Decimal("1.01")),
        ("round(5, 2)", Decimal("5.00")),
        ("round(1234, -2)", Decimal(1200)),
        ("round(1, 31)", None),
        ("round(1, 1.5)", None),
        ("round(nothing, 2)", None),
        ("abs(-3)", Decimal(3)),
        ("number('-1234.50')", Decimal("-1234.50")),
        ("number(' 5 ')", Decimal(5)),
        ("number('1.234,50')", None),
        ("number('5.')", None),
        ("number('-')", None),
        ("number('1e9')", None),
        ("number('²')", None),
        ("number(net)", Decimal("100.10")),
        ("min(3, 1, 2)", Decimal(1)),
        ("max(3, nothing, 2)", Decimal(3)),
        ("max(nothing)", None),
        ("min(lines.amount)", Decimal("0.25")),
        ("max(lines.amount, 20)", Decimal(20)),
        ("max(1, 'a')", None),
        ("max('a', 'b')", "b"),
        ("max(issued, issued)", date(2025, 8, 7)),
        # Columns
        ("sum(lines.amount)", Decimal("10.75")),
        ("sum(lines.unit)", None),
        ("sum(lines.foo)", Decimal(0)),
        ("sum(none.amount)", Decimal(0)),
        ("count(lines)", 3),
        ("count(lines.amount)", 2),
        ("count(none)", 0),
        ("first(lines.amount)", Decimal("10.50")),
        ("last(lines.unit)", "kg"),
        ("first(none.x)", None),
        ("running(lines.no)", True),
        ("running(lines.amount)", False),
        ("running(lines.foo)", False),
        ("running(none.no)", True),
        ("unique(lines.no)", True),
        ("unique(lines.unit)", True),
        # Choices
        ("if(net > 100, 'much', 'little')", "much"),
        ("if(nothing > 100, 'much', 'little')", "little"),
        ("coalesce(nothing, blank, buyer, 'x')", "PT Maju"),
        ("coalesce(nothing, blank)", None),
        ("empty(nothing)", True),
        ("empty(blank)", True),
        ("empty(none)", True),
        ("empty(net)", False),
        ("lookup('units', 'kg')", "UM.0003"),
        ("lookup('units', ' LUSIN besar ')", "UM.0017"),
        ("lookup('units', 'kg.')", "UM.0003"),
        ("lookup('units', 'zak')", None),
        ("lookup('units', nothing)", None),
        ("lookup('any', 'zak')", "other"),
        # Texts
        ("text(net)", "100.10"),
        ("text(issued)", "2025-08-07"),
        ("text(paid)", "true"),
        ("text(nothing)", None),
        ("concat('a', nothing, 1.50, issued)", "a1.502025-08-07"),
        ("concat(nothing)", ""),
        ("upper('straße')", "STRASSE"),
        ("lower('ABC')", "abc"),
        ("trim(' a b\u00a0')", "a b"),
        ("digits('07.154-9')", "071549"),
        ("digits('²٣')", ""),
        ("digits(nothing)", None),
        ("pad('12', 6, '0')", "000012"),
        ("pad(12, 1, '0')", "12"),
        ("pad('1', 1001, '0')", None),
        ("pad('1', 6, 'ab')", None),
        ("pad('1', 0.5, '0')", None),
        ("left('abc', 2)", "ab"),
        ("left('abc', 9)", "abc"),
        ("left('abc', -1)", ""),
        ("right('abc', 2)", "bc"),
        ("right('abc', 0)", ""),
        ("right('abc', 9)", "abc"),
        ("right('abc', -1)", ""),
        ("contains('Pasang (JASA)', '(jasa)')", True),
        ("contains(nothing, 'a')", None),
        ("matches('abc', 'b')", True),
        ("matches('abc', '^b')", False),
        ("matches(nothing, 'b')", None),
        ("replace('a-b-c', '-', '')", "abc"),
        (r"replace('2025/08', '(\d+)/(\d+)', '\2.\1 \\')", r"08.2025 \\".replace(r"\\", "\\")),
        ("replace('abc', 'x*', '.')", ".a.b.c."),
        ("replace('äöü', 'ö', 'x')", "äxü"),
        ("replace(nothing, 'a', 'b')", None),
        ("date(issued, 'dd/MM/yyyy')", "07/08/2025"),
        ("date(issued, 'd MMM yy')", "7 Aug 25"),
        ("date('2025-08-07', 'MMMM')", "August"),
        ("date(buyer, 'yyyy')", None),
        ("date(nothing, 'yyyy')", None),
        ("carried('lines')", None),
        # Names
        ("unknown", None),
        ("lines.no", [1, 2, 3]),
    ],
)
def test_what_expressions_say(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_a_name_is_the_rows_then_the_documents() -> None:
    row = DATA["lines"][0]
    assert value("amount", row) == Decimal("10.50")
    assert value("net", row) == Decimal("100.10")
    assert value("discount") == Decimal(9)
    assert value("discount", row) is None, "an empty cell is not the document's field of the same name"
    assert value("sum(lines.amount) - amount", row) == Decimal("0.25")


def test_what_was_looked_up_in_vain_is_remembered() -> None:
    scope = Scope(DATA, LOOKUPS)
    for row in ({"unit": "zak"}, {"unit": "kg"}, {"unit": "dus"}):
        Expression("lookup('units', unit)").evaluate(scope.with_row(row))
    assert scope.misses == [Miss("units", "zak"), Miss("units", "dus")]


def test_what_the_mapping_has_an_answer_to_is_not_in_vain() -> None:
    scope = Scope(DATA, LOOKUPS)
    assert Expression("coalesce(lookup('units', 'zak'), 'UM.0033')").evaluate(scope) == "UM.0033"
    assert Expression("if(empty(lookup('units', 'zak')), 1, 2)").evaluate(scope) == Decimal(1)
    assert scope.misses == []


@given(
    whole=st.decimals(0, 10**9, places=2),
    weights=st.lists(st.none() | st.decimals(0, 10**9, places=2), min_size=1, max_size=30),
)
def test_a_number_is_spread_over_the_rows_without_a_rest(whole: Decimal, weights: list[Decimal | None]) -> None:
    rows = [{"amount": weight} for weight in weights]
    scope = Scope({"whole": whole, "lines": rows}, {})
    spread = Expression("spread(whole, lines.amount)")
    dealt: list[Any] = [spread.evaluate(scope.with_row(row, index)) for index, row in enumerate(rows)]
    total = sum(weight for weight in weights if weight)
    if not total:
        assert set(dealt) == {None}
        return
    assert sum(share for share in dealt if share is not None) == whole
    for share, weight in zip(dealt, weights, strict=True):
        assert (share is None) is (weight is None)
        if weight is not None:
            assert abs(share - whole * weight / total) <= Decimal("0.011")
            assert share <= weight or whole > total


def test_a_number_is_spread_to_other_decimals_and_not_without_a_row() -> None:
    rows = [{"a": Decimal(1)}, {"a": Decimal(1)}, {"a": Decimal(1)}]
    scope = Scope({"lines": rows}, {})
    spread = Expression("spread(100, lines.a, 0)")
    assert [spread.evaluate(scope.with_row(row, index)) for index, row in enumerate(rows)] == [33, 34, 33]
    assert spread.evaluate(scope) is None


def test_a_sum_is_worked_out_once_for_all_rows() -> None:
    rows = [{"a": Decimal(1)} for _ in range(100)]
    scope = Scope({"lines": rows}, {})
    share = Expression("a / sum(lines.a)")
    assert share.evaluate(scope.with_row(rows[0])) == Decimal("0.01")
    rows.append({"a": Decimal(1)})
    assert share.evaluate(scope.with_row(rows[0])) == Decimal("0.01"), "a scope keeps what it has worked out"
    assert share.evaluate(Scope({"lines": rows}, {}, rows[0])) != Decimal("0.01")


@pytest.mark.parametrize(
    ("text", "position", "sentence"),
    [
        ("", 0, "the expression is empty"),
        ("  ", 0, "the expression is empty"),
        ("1 +", 3, "something is missing at the end"),
        ("net = 1", 4, "to compare, write =="),
        ('"kg"', 0, "texts are written in single quotes, as in 'kg'"),
        ("'kg", 0, "this text has no closing quote"),
        ("a < b < c", 6, "only two values can be compared at a time; write a < b and b < c"),
        ("suum(lines.a)", 0, "there is no function called suum; did you mean sum?"),
        ("round()", 0, "round is written round(x, [places])"),
        ("round(1, 2, 3)", 0, "round is written round(x, [places])"),
        ("(1 + 2", 6, "a closing bracket is missing"),
        ("1 + 2)", 5, "this bracket was never opened, or something is missing before it"),
        ("a +-1", 2, "a tolerance (±) can only follow == or !="),
        ("a < b ± 1", 6, "a tolerance (±) can only follow == or !="),
        ("1,5", 1, "a comma can only separate the values of a function; numbers are written as in 0.5"),
        (".5", 0, "a number begins with a digit, as in 0.5"),
        ("12%", 2, "there is no percent sign; write x / 100"),
        ("a && b", 2, "write and"),
        ("Net", 0, "Net is not a name: names are lower case, as in net_total"),
        ("a.b.c", 0, "a.b.c has too many dots; a column is written as in lines.amount"),
        ("lines.and", 0, "lines.and is not a name: names are lower case, as in net_total"),
        ("1e5", 1, "e5 is not expected here"),
        ("a 'b'", 2, "'b' is not expected here"),
        ("__import__('os')", 0, "there is no function called __import__"),
        ("a.__class__", 0, "a.__class__ is not a name: names are lower case, as in net_total"),
        ("[1]", 0, "'[' has no meaning here"),
        ("matches(a, b)", 11, "the pattern of matches must be a text in quotes"),
        ("matches(a, '(')", 11, "the pattern is not valid for RE2: missing ): ("),
        ("matches(a, '(?=x)')", 11, "the pattern is not valid for RE2: invalid perl operator: (?="),
        (r"replace(a, 'b', '\1')", 16, r"\1 is not a group of the pattern; a backslash itself is written \\"),
        ("lookup(a, b)", 7, "the look-up of lookup must be a text in quotes"),
        ("1" * 41, 0, "a number has at most 40 digits"),
    ],
)
def test_mistakes_are_told_with_their_place(text: str, position: int, sentence: str) -> None:
    with pytest.raises(ExpressionError) as error:
        Expression(text)
    assert (error.value.sentence, error.value.position) == (sentence, position)
    assert str(error.value) == f"{sentence} (at character {position + 1})"


def test_date_formats_are_checked_at_once() -> None:
    with pytest.raises(ExpressionError, match="YYYY is not part of a date format"):
        Expression("date(a, 'YYYY-MM-DD')")


def test_what_an_expression_uses() -> None:
    expression = Expression("if(carried('lines'), round(sum(lines.amount) * rate, 2), lookup('units', unit)) == net")
    assert expression.names == {"lines.amount", "rate", "unit", "net"}
    assert expression.functions == {"if", "carried", "round", "sum", "lookup"}
    assert expression.lookups == {"units"}
    assert expression.carrying == {"lines"}


def test_the_sides_of_a_comparison() -> None:
    scope = Scope(DATA, LOOKUPS)
    found = Expression("net * 2 == 200 ± 0.1").sides(scope)
    assert found is not None
    assert (found.left, found.operator, found.right, found.tolerance, found.holds) == (
        Decimal("200.20"),
        "==",
        Decimal(200),
        Decimal("0.1"),
        False,
    )
    second = Expression("net > 1 and net < 5").sides(scope)
    assert second is not None
    assert (second.left, second.operator, second.right) == (Decimal("100.10"), "<", Decimal(5))
    assert Expression("running(lines.no)").sides(scope) is None
    assert Expression("net > 1 and net > 2").sides(scope) is None, "all of them hold"


class Model(BaseModel):
    expect: Expression


def test_in_a_model_it_is_its_text() -> None:
    model = Model.model_validate({"expect": "net == 1"})
    assert model.expect == Expression("net == 1")
    assert model == Model.model_validate_json('{"expect": "net == 1"}')
    assert model == Model(expect=Expression("net == 1"))
    assert model.model_dump() == {"expect": "net == 1"}
    assert model.model_dump_json() == '{"expect":"net == 1"}'
    assert TypeAdapter(Expression).json_schema() == {"type": "string", "minLength": 1, "maxLength": 500}
    with pytest.raises(ValidationError, match=r"to compare, write == \(at character 5\)"):
        Model.model_validate({"expect": "net = 1"})
    with pytest.raises(ValidationError, match="an expression is a text"):
        Model.model_validate({"expect": 1})


def test_it_survives_copying_hashing_and_another_process() -> None:
    expression = Expression("net == 1")
    assert repr(expression) == "Expression('net == 1')"
    assert len({expression, Expression("net == 1"), Expression("net==1")}) == 2
    assert expression != "net == 1"
    for other in (copy.deepcopy(expression), pickle.loads(pickle.dumps(expression))):  # noqa: S301 - our own bytes
        assert other == expression
        assert other.evaluate(Scope({"net": Decimal(1)}, {})) is True


def test_the_table_of_functions_documents_itself() -> None:
    for name, function in FUNCTIONS.items():
        assert function.signature.startswith(f"{name}(")
        assert function.signature.endswith(")")
        assert function.doc.endswith(".")
        assert "\n" not in function.doc
        written = [part for part in function.signature[len(name) + 1 : -1].split(", ") if part != "..."]
        assert len(written) == len(function.takes)
        assert sum(part.startswith("[") for part in written) == function.optional
        assert ("..." in function.signature) is function.repeats


def in_rows(text: str, *rows: dict[str, Any]) -> tuple[list[Any], list[Miss]]:
    scope = Scope({"discount": Decimal(9)}, LOOKUPS)
    evaluate = Expression(text).for_rows()
    return [evaluate(scope.with_row(row, index)) for index, row in enumerate(rows)], scope.misses


def test_what_is_made_of_a_text_is_the_same_in_every_row() -> None:
    rows: list[dict[str, Any]] = [{"unit": unit} for unit in ("kg", "zak", "kg", None, "", "zak")]
    found, misses = in_rows("lookup('units', unit)", *rows)
    assert found == ["UM.0003", None, "UM.0003", None, None, None]
    assert misses == [Miss("units", "zak")] * 2, "a text without a value is reported for every row"


def test_equal_numbers_of_different_spelling_are_told_apart_in_rows() -> None:
    found, _ = in_rows("text(price)", {"price": Decimal("1.0")}, {"price": Decimal("1.00")}, {"price": "1"})
    assert found == ["1.0", "1.00", "1"]


def test_a_row_without_the_column_has_the_value_of_the_document() -> None:
    found, _ = in_rows("concat(discount, '%')", {"discount": "5"}, {}, {"discount": None})
    assert found == ["5%", "9%", "%"]


@pytest.mark.parametrize("printed", ["0", "37500", "37500.00", "-0.10", "0E-10", "1E-7", "1E+5", "NaN", "-Infinity"])
def test_places_are_those_of_the_number_itself(printed: str) -> None:
    number = Decimal(printed)
    exponent = number.as_tuple().exponent
    assert places(number) == (max(0, -exponent) if isinstance(exponent, int) else 0)
