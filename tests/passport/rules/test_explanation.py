"""An explanation says what a field depends on, and how its value came about."""

from __future__ import annotations

import pytest

from waybill_passport.rules import GivenFacts, UnknownField, explain, load_rules

PACKAGE = load_rules(
    "field battery.capacity: Qty(kWh) = requireSome(recordGet(requireSome("
    'getFact("Battery", "b:1"), "E1", "No battery."), "capacity", Qty(kWh)), "E2", "No capacity.");\n'
    'field battery.large: Bool = field("battery.capacity") > toQty("kWh", 2);\n'
)


def test_a_value_is_explained_down_to_its_facts() -> None:
    found = explain(PACKAGE, "battery.large", GivenFacts({("Battery", "b:1"): {"capacity": 52}}))
    assert list(found.lines()) == [
        "battery.large: Bool   (line 2)",
        "  uses fields: battery.capacity",
        "  reads facts: Battery b:1",
        "  value: true",
        "  > = true",
        '    field battery.capacity = {"unit": "kWh", "value": "52.000000"}',
        '      requireSome E2 = {"unit": "kWh", "value": "52.000000"}',
        '        recordGet capacity = {"unit": "kWh", "value": "52.000000"}',
        '          requireSome E1 = {"capacity": 52}',
        '            fact Battery b:1 = {"capacity": 52}',
        '    toQty = {"unit": "kWh", "value": "2.000000"}',
        "      constant = 2",
    ]


def test_a_failure_is_an_explanation_too() -> None:
    lines = list(explain(PACKAGE, "battery.large", GivenFacts({})).lines())
    assert lines[-1] == "  fails: MISSING_FACT in battery.capacity, line 1: E1: No battery."


def test_an_unknown_field_is_named_with_its_nearest() -> None:
    with pytest.raises(UnknownField, match=r"Did you mean 'battery\.large'\?"):
        explain(PACKAGE, "battery.larg", GivenFacts({}))


def test_a_long_explanation_is_cut() -> None:
    package = load_rules(f"field a: Int = {' + '.join(str(number) for number in range(400))};")
    assert list(explain(package, "a", GivenFacts({})).lines())[-1] == "  …"
