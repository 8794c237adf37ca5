"""Properties over random texts and values: no expression makes evaluation fail, hang or grow."""

from __future__ import annotations

import time
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waybill_documents.expressions import FUNCTIONS, Expression, ExpressionError, Scope
from waybill_documents.expressions.functions import Kind
from waybill_documents.value_text import reader

ODD_NUMBERS = [
    *map(
        Decimal,
        ["0", "-0", "1E+999999", "-1E+999999", "1E-999999", "0E-999999", "0E+999999", "NaN", "sNaN", "Infinity"],
    ),
    Decimal("9" * 40),
    Decimal("9" * 5000),
    Decimal("0." + "3" * 5000),
]
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**40, -(10**40), 10**5000])
    | st.decimals()
    | st.sampled_from(ODD_NUMBERS)
    | st.dates()
    | st.text(max_size=20)
    | st.text(alphabet=st.characters(), max_size=5)
    | st.sampled_from(["", "2025-08-07", "2025-W32-4", "9999-99-99", "-", "1.5", "\ud800"])
)
rows = st.lists(st.dictionaries(st.sampled_from(["a", "b"]), scalars), max_size=4)
data = st.fixed_dictionaries({}, optional={"x": scalars, "y": scalars, "z": scalars, "t": rows})
row = st.none() | st.dictionaries(st.sampled_from(["x", "a"]), scalars)

_QUOTED = {
    Kind.PATTERN: st.sampled_from(["'a'", "'(a*)*b'", "'.'", "''", r"'(\d+)'"]),
    Kind.FORMAT: st.sampled_from(["'yyyy-MM-dd'", "'d MMM yy'"]),
    Kind.LOOKUP: st.sampled_from(["'l'", "'none'"]),
    Kind.CARRYING: st.just("'t'"),
    Kind.TEMPLATE: st.sampled_from(["''", "'xy'", r"'\\'", r"'\0\0'"]),
}
leaves = st.sampled_from(["x", "y", "z", "t", "t.a", "t.b", "0", "1", "0.01", "40", "''", "'a'", "'1'", "9" * 40])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def call(name: str) -> st.SearchStrategy[str]:
        function = FUNCTIONS[name]
        most = function.most or function.least + 2
        return st.integers(function.least, most).flatmap(
            lambda count: st.tuples(*(_QUOTED.get(function.parameter(i), inner) for i in range(count))).map(
                lambda arguments: f"{name}({', '.join(arguments)})"
            )
        )

    operators = st.sampled_from(["+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">=", "and", "or"])
    return (
        st.tuples(inner, operators, inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})")
        | st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} == {parts[1]} ± {parts[2]})")
        | inner.map(lambda part: f"(-{part})")
        | inner.map(lambda part: f"(not {part})")
        | st.sampled_from(sorted(FUNCTIONS)).flatmap(call)
    )


expressions = st.recursive(leaves, _larger, max_leaves=8).filter(lambda text: len(text) <= 500)


@settings(max_examples=400)
@given(expressions, data, row)
def test_evaluation_is_total(text: str, values: dict[str, Any], of_row: dict[str, Any] | None) -> None:
    expression = Expression(text)
    scope = Scope(values, {"l": {"a": "b", "1": "2"}}, of_row, reader=reader(None))
    found = expression.evaluate(scope)
    assert found is None or isinstance(found, str | int | Decimal | date | list)
    expression.sides(scope)
    if text not in {"x", "y", "z"} and isinstance(found, Decimal) and not expression.functions:
        assert found.is_finite()
        assert len(found.as_tuple().digits) <= 40 or found in values.values()


@settings(max_examples=300)
@given(st.text(max_size=60) | st.text(alphabet="ab.(),'+-*/<>=!± 019andorot", max_size=60) | expressions)
def test_parsing_raises_nothing_but_its_own_error(text: str) -> None:
    try:
        Expression(text)
    except ExpressionError as error:
        position = error.position
    else:
        position = 0
    assert 0 <= position <= len(text)


@given(st.text(alphabet=st.characters(), max_size=40))
def test_any_pattern_is_compiled_or_refused(pattern: str) -> None:
    quoted = pattern.replace("'", "''")
    try:
        expression = Expression(f"matches(x, '{quoted}')")
    except ExpressionError:
        return
    assert expression.evaluate(Scope({"x": "some text"}, {})) in {True, False}


amounts = st.decimals(-(10**15), 10**15, places=4, allow_nan=False, allow_infinity=False)
EXACT = Context(prec=40, traps=[DivisionByZero, InvalidOperation, Overflow])


@given(amounts, amounts)
def test_arithmetic_agrees_with_decimal(a: Decimal, b: Decimal) -> None:
    scope = Scope({"a": a, "b": b}, {})
    assert Expression("a + b").evaluate(scope) == EXACT.add(a, b)
    assert Expression("a - b").evaluate(scope) == EXACT.subtract(a, b)
    assert Expression("a * b").evaluate(scope) == EXACT.multiply(a, b)
    assert Expression("a / b").evaluate(scope) == (EXACT.divide(a, b) if b else None)
    assert Expression("round(a, 2)").evaluate(scope) == a.quantize(Decimal("0.01"), ROUND_HALF_UP)
    assert Expression("a < b").evaluate(scope) is (a < b)
    assert Expression("a == b ± 1").evaluate(scope) is (abs(a - b) <= 1)
    assert Expression("-a + a == 0").evaluate(scope) is True


@given(st.lists(amounts, max_size=30))
def test_sums_agree_with_decimal(column: list[Decimal]) -> None:
    scope = Scope({"lines": [{"a": amount} for amount in column]}, {})
    assert Expression("sum(lines.a)").evaluate(scope) == sum(column, Decimal(0))
    assert Expression("max(lines.a)").evaluate(scope) == max(column, default=None)


def test_an_expression_has_500_characters_at_most() -> None:
    longest = "+".join(["1"] * 250) + " "
    assert len(longest) == 500
    assert Expression(longest).evaluate(Scope({}, {})) == Decimal(250)
    with pytest.raises(ExpressionError, match="at most 500 characters"):
        Expression(longest + " ")


@pytest.mark.parametrize(
    ("opening", "closing"), [("(", ")"), ("-", ""), ("not ", ""), ("abs(", ")"), ("if(a,1,", ")"), ("-(", ")")]
)
def test_nesting_is_bounded(opening: str, closing: str) -> None:
    fits = 50 // len([sign for sign in opening if sign in "-("] or [1])
    for depth, allowed in ((fits, True), (fits + 1, False)):
        text = opening * depth + "1" + closing * depth
        if allowed:
            Expression(text).evaluate(Scope({}, {}))
        else:
            with pytest.raises(ExpressionError, match="nested more than 50 deep"):
                Expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "*".join(["9999999999"] * 40),
        "big * big",
        "1 / tiny",
        "huge + 1",
        "huge * huge",
        "round(huge, 2)",
        "text(huge)",
        "text(small)",
        "concat(huge) == ''",
        "number(digits_40) * 10",
        "-huge",
        "sum(lines.huge)",
        "max(huge, 1)",
        "pad(huge, 10, '0')",
        "many",
    ],
)
def test_numbers_do_not_grow(text: str) -> None:
    scope = Scope(
        {
            "big": Decimal("9" * 40),
            "tiny": Decimal("1E-41"),
            "huge": Decimal("1E+999999"),
            "small": Decimal("1E-999999"),
            "digits_40": "9" * 40,
            "lines": [{"huge": Decimal("1E+999999")}] * 3,
        },
        {},
    )
    started = time.perf_counter()
    found = Expression(text).evaluate(scope)
    assert time.perf_counter() - started < 1
    assert found in (None, True, Decimal(1))


def test_texts_do_not_grow() -> None:
    scope = Scope({"long": "x" * 100_000, "longer": "x" * 100_001}, {})
    for text in (
        "concat(long, 'x')",
        f"replace(long, '', '{'y' * 400}')",
        "upper(longer)",
        "matches(longer, 'x')",
    ):
        assert Expression(text).evaluate(scope) is None
    assert Expression("concat(long)").evaluate(scope) == "x" * 100_000
    assert Expression("upper(long)").evaluate(Scope({"long": "ß" * 50_001}, {})) is None


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a|aa)+$", "(a+)+$", "(.*)*x", "(a|a?)+b", "a?a?a?a?a?a?a?a?a?a?aaaaaaaaaa$"]
)
def test_catastrophic_patterns_take_linear_time(pattern: str) -> None:
    scope = Scope({"x": "a" * 50_000 + "!"}, {})
    started = time.perf_counter()
    Expression(f"matches(x, '{pattern}')").evaluate(scope)
    assert time.perf_counter() - started < 5  # not exponential; the machine may be busy


def test_patterns_that_would_take_too_much_memory_are_refused() -> None:
    for pattern in ("((a{100}){100}){100}", "a{1001}", "(x{999}){999}"):
        with pytest.raises(ExpressionError, match="not valid for RE2"):
            Expression(f"matches(x, '{pattern}')")


def test_replacing_takes_linear_time() -> None:
    scope = Scope({"x": "äb" * 50_000}, {})
    started = time.perf_counter()
    assert Expression("replace(x, 'b', 'c')").evaluate(scope) == "äc" * 50_000
    assert time.perf_counter() - started < 10  # not quadratic; the machine may be busy
