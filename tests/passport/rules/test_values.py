"""What a payload says, a fact can say: values come back from JSON as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill_passport.rules import load_rules
from waybill_passport.rules.random_values import Draws, bounded, generate, simpler, usual_bounds
from waybill_passport.rules.types import RuleType
from waybill_passport.rules.values import decode, encoder, weight

WRITTEN = [
    "Bool", "Int", "Text", "Date", "Dec(0)", "Dec(18)", "Qty(kg)", "Qty(pct)", "Opt(Date)", "List(Dec(3))",
    "Map(Text, Opt(Int))", "Record(a: Int, b: Opt(Text), c: List(Qty(g)))", "List(Map(Text, List(Bool)))",
]  # fmt: skip


def type_of(written: str) -> RuleType:
    value = f"none({written[4:-1]})" if written.startswith("Opt") else f'requireSome(none({written}), "A", "a")'
    return load_rules(f"field a: {written} = {value};").types["a"]


TYPES = [type_of(each) for each in WRITTEN]


@given(st.sampled_from(TYPES), st.integers(0, 2**40))
def test_a_value_survives_its_json(of: RuleType, seed: int) -> None:
    value = generate(of, Draws(seed, "any", 0))
    assert decode(of, encoder(of)(value)) == value


@given(st.sampled_from(TYPES), st.integers(0, 2**40))
def test_simpler_values_are_of_the_type_and_come_to_an_end(of: RuleType, seed: int) -> None:
    value = generate(of, Draws(seed, "any", 0))
    for _ in range(1000):
        candidate = next(simpler(of, value), None)
        if candidate is None:
            break
        assert candidate != value
        assert decode(of, encoder(of)(candidate)) == candidate
        value = candidate
    assert next(simpler(of, value), None) is None


@given(st.sampled_from([each for each in TYPES if bounded(each)]), st.integers(0, 2**40))
def test_numbers_and_days_stay_in_their_bounds(of: RuleType, seed: int) -> None:
    low, high = usual_bounds(of)
    assert low <= generate(of, Draws(seed, "any", 0)) <= high
    assert generate(of, Draws(seed, "any", 0), high, high) == high


@pytest.mark.parametrize("most", [0, 10, 1000])
def test_counting_what_is_shared_stops(most: int) -> None:
    value: list[object] = [1, 2]
    for _ in range(60):
        value = [value, value]
    assert weight(value, most) == most + 1
