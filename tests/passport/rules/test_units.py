"""The algebra of units."""

from __future__ import annotations

from itertools import product as pairs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill_passport.rules import GivenFacts, RuleFailure, load_rules
from waybill_passport.rules.units import UNITS, conversion, product, quotient

AMOUNTS = st.integers(-(10**12), 10**12)


def amount(number: int) -> str:
    """A literal with six decimal places."""
    digits = str(abs(number)).rjust(7, "0")
    return f"{'-' if number < 0 else ''}{digits[:-6]}.{digits[-6:]}"


def holds(condition: str) -> bool:
    found = load_rules(f"field holds: Bool = {condition};").evaluate(GivenFacts({})).fields["holds"]
    assert isinstance(found, bool)
    return found


@given(st.sampled_from(UNITS), AMOUNTS, AMOUNTS, AMOUNTS)
def test_addition_is_a_group(unit: str, a: int, b: int, c: int) -> None:
    x, y, z = (f'toQty("{unit}", {amount(each)})' for each in (a, b, c))
    assert holds(f"{x} + {y} == {y} + {x}")
    assert holds(f"({x} + {y}) + {z} == {x} + ({y} + {z})")
    assert holds(f'{x} - {x} == toQty("{unit}", 0) && {x} - {y} == {x} + -{y} && -(-{x}) == {x}')
    assert holds(f'sumQty("{unit}", [{x}, {y}, {z}]) == {x} + {y} + {z}')


@given(st.sampled_from(UNITS), AMOUNTS, AMOUNTS, st.integers(-1000, 1000))
def test_whole_multiples_distribute(unit: str, a: int, b: int, times: int) -> None:
    x, y = (f'toQty("{unit}", {amount(each)})' for each in (a, b))
    assert holds(f"({x} + {y}) * {times} == {x} * {times} + {y} * {times} && {x} * {times} == {times} * {x}")
    assert holds(f"{x} * 1 == {x} && {x} * 1.00 == {x} && {x} / 1 == {x}")


@given(st.sampled_from([("kg", "g"), ("kWh", "Wh"), ("kgCO2e", "gCO2e")]), AMOUNTS, AMOUNTS)
def test_conversion_to_the_smaller_unit_and_back_loses_nothing(units: tuple[str, str], a: int, b: int) -> None:
    large, small = units
    x, y = (f'toQty("{large}", {amount(each)})' for each in (a, b))

    def down(term: str) -> str:
        return f'convert("{large}", "{small}", {term})'

    assert holds(f'convert("{small}", "{large}", {down(x)}) == {x}')
    assert holds(f"{down(f'{x} + {y}')} == {down(x)} + {down(y)} && ({x} < {y}) == ({down(x)} < {down(y)})")


def test_conversion_and_products_are_symmetric() -> None:
    for a, b in pairs(UNITS, UNITS):
        forth, back = conversion(a, b), conversion(b, a)
        assert (forth is None) == (back is None)
        assert forth is None or back is None or forth == back[::-1]
        assert product(a, b) == product(b, a)
    assert quotient("gCO2e", "kWh") == "gCO2e_per_kWh"
    assert product("gCO2e_per_kWh", "kWh") == ("gCO2e", 1)


@given(AMOUNTS)
def test_percentages_and_pieces(a: int) -> None:
    x = f'toQty("kg", {amount(a)})'
    assert holds(f'{x} * toQty("pct", 100) == {x} && {x} * toQty("pct", 0) == toQty("kg", 0)')
    assert holds(f'{x} * toQty("each", 3) == {x} * 3 && {x} / toQty("each", 1) == {x}')


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (2, "2.000000"),
        ("2.5", "2.500000"),
        ({"value": 1500, "unit": "g"}, "1.500000"),
        ({"value": "0.0000005", "unit": "unit:kilogram"}, "0.000000"),
        ({"value": "0.0015", "unit": "unit:gram"}, "0.000002"),
        ({"value": "0.0005", "unit": "unit:gram"}, "0.000000"),
    ],
)
def test_facts_may_carry_a_unit_of_their_own(written: object, expected: str) -> None:
    package = load_rules(
        'field m: Qty(kg) = requireSome(recordGet(requireSome(getFact("P", "1"), "A", "a"), "m", Qty(kg)), "B", "b");'
    )
    assert package.evaluate(GivenFacts({("P", "1"): {"m": written}})).fields["m"] == {"unit": "kg", "value": expected}
    with pytest.raises(RuleFailure, match=r"UNIT_MISMATCH in m, line 1: .*convert into kg"):
        package.evaluate(GivenFacts({("P", "1"): {"m": {"value": 1, "unit": "unit:piece"}}}))
