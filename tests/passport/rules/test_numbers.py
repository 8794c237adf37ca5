"""Exact numbers: rounding is half to even, and nothing is a float."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill_passport.rules.numbers import divided, fraction, rescaled, written

WIDE = Context(prec=200)


@given(st.integers(-(10**40), 10**40), st.integers(-(10**20), 10**20).filter(bool))
def test_a_quotient_is_rounded_half_to_even(numerator: int, denominator: int) -> None:
    assert divided(numerator, denominator) == round(Fraction(numerator, denominator))


@pytest.mark.parametrize(("tenths", "rounded"), [(5, 0), (15, 2), (25, 2), (-5, 0), (-15, -2), (-25, -2), (26, 3)])
def test_ties_go_to_the_even_neighbour(tenths: int, rounded: int) -> None:
    assert rescaled(tenths, 1, 0) == rounded


@given(st.integers(-(10**30), 10**30), st.integers(0, 18), st.integers(0, 18))
def test_another_scale_is_the_number_that_decimal_makes(number: int, scale: int, wanted: int) -> None:
    exact = Decimal(number).scaleb(-scale, WIDE)
    expected = exact.quantize(Decimal(1).scaleb(-wanted), ROUND_HALF_EVEN, WIDE)
    digits = f"{abs(expected):f}" if expected == 0 else f"{expected:f}"
    assert written(rescaled(number, scale, wanted), wanted) == digits


@pytest.mark.parametrize(
    ("value", "expected"),
    [(5, 5), ("12.50", Fraction(25, 2)), (Decimal("-1E+2"), -100), (Decimal("2.5E-3"), Fraction(1, 400)), ("-0", 0)],
)
def test_numbers_of_facts_are_exact(value: object, expected: Fraction) -> None:
    found = fraction(value)
    assert found is not None
    assert Fraction(*found) == expected


@pytest.mark.parametrize(
    "value",
    [True, None, 1.5, "1e5", "", "١", "1.", ".5", " 1", "1\n", Decimal("NaN"), Decimal("-Infinity"),
     Decimal("1E+999999"),
     Decimal("1E-999999"), 10**100, "9" * 62, [], "0x10"],
)  # fmt: skip
def test_what_is_no_plain_number_is_none(value: object) -> None:
    assert fraction(value) is None
