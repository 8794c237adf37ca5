"""Tests beside the rules: examples, properties, and small counterexamples."""

from __future__ import annotations

import pytest

from waybill_passport.rules import Fuel, RuleTestReport, load_rules

RULES = """
field mass: Dec(2) = requireSome(
  recordGet(requireSome(getFact("P", "1"), "E1", "No part."), "mass", Dec(2)), "E2", "No mass.");
field light: Bool = emitCompliance("Light", if field("mass") < 40.00 then "PASS" else "FAIL", toText(field("mass")));
"""


def report(tests: str, rules: str = RULES) -> RuleTestReport:
    return load_rules(rules + tests).run_tests()


def failed(tests: str) -> str:
    found = report(tests)
    assert len(found.failed) == 1
    return str(found.failed[0])


def test_passing_tests_and_generated_cases_are_counted() -> None:
    found = report(
        'example "one" { fact "P" "1" = {"mass": 1.5}; expect field("mass") == 1.50; expect emits "Light" "PASS"; }'
        'example "none" { expect fails light "E1"; expect fails mass "MISSING_FACT"; }'
        'property "read" cases(50) seed(1) { forall m: Dec(2); fact "P" "1" = {"mass": m}; expect field("mass") == m; }'
        'property "more" cases(30) seed(2) { forall n: Int; assume n > 0; expect n * 2 > n; }'
    )
    assert found == RuleTestReport(passed=4, failed=(), generated_cases=80)


def test_only_the_fields_that_are_expected_are_evaluated() -> None:
    assert report('example "no facts" { expect 1 + 1 == 2; }').passed == 1


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ('\nexample "x" { fact "P" "1" = {"mass": 2}; \n expect field("mass") == 1.00; }', 'line 7: "x": This'),
        ('example "x" { expect field("mass") == 1.00; }', "MISSING_FACT in mass, line 3: E1: No part."),
        ('example "x" { fact "P" "1" = {"mass": 2}; expect fails mass "E1"; }', "mass does not fail."),
        ('example "x" { fact "P" "1" = {}; expect fails mass "E1"; }', "mass fails otherwise: MISSING_FACT in"),
        ('example "x" { fact "P" "1" = {"mass": 50}; expect emits "Light" "PASS"; }', 'but it emits "FAIL".'),
        ('example "x" { fact "P" "1" = {"mass": 50}; expect emits "L" "PASS"; }', "but nothing is emitted for it."),
        ('property "x" cases(5) seed(1) { forall n: Int; assume n > 5000; expect true; }',
         "Only 0 of 50 generated cases"),
    ],
)  # fmt: skip
def test_a_failed_test_says_which_line_and_why(test: str, message: str) -> None:
    assert message in failed(test)


@pytest.mark.parametrize(
    ("variable", "condition", "smallest"),
    [
        ("n: Int", "n < 37", "n = 37"),
        ("n: Int from 10 to 90", "n < 37", "n = 37"),
        ("n: Int", "n > -37", "n = -37"),
        ("n: Dec(2) from 0 to 100", "n < 40.5", "n = 40.50"),
        ("n: Date", 'n < date("2030-05-01")', "n = 2030-05-01"),
        ("n: Bool", "n && false", "n = False"),
        ("n: Text", "length(n) < 3", "n = aaa"),
        ("n: List(Int)", "length(n) < 2", "n = [0, 0]"),
        ("n: List(Int)", "fold(n, 0, (t, x) -> t + x) < 9", "n = [9]"),
        ("n: Opt(Int)", "!isSome(n)", "n = 0"),
        ("n: Map(Text, Int)", "length(n) < 1", "n = {"),
        ("n: Record(a: Int, b: Bool)", "n.a < 5", "n = {'a': 5, 'b': False}"),
        ("n: Qty(kg)", 'n < toQty("kg", 2)', "n = {'unit': 'kg', 'value': '2.000000'}"),
    ],
)
def test_a_counterexample_is_made_small(variable: str, condition: str, smallest: str) -> None:
    found = failed(f'property "x" cases(200) seed(5) {{ forall {variable}; expect {condition}; }}')
    assert found.endswith(f"\n    {smallest}") or (smallest.endswith("{") and smallest in found)


def test_the_same_seed_gives_the_same_cases_and_another_one_others() -> None:
    def first(seed: int) -> str:
        return failed(f'property "x" cases(20) seed({seed}) {{ forall a: Int; forall b: Text; assume length(b) > 2;'
                      ' expect toText(a) == b; }')  # fmt: skip

    assert first(1) == first(1)
    tests = 'property "x" cases(9) seed(%d) { forall a: Int; expect true; }'
    assert load_rules(tests % 1).tests_hash != load_rules(tests % 2).tests_hash


def test_tests_share_one_bounded_fuel() -> None:
    endless = 'property "x" cases(10000) seed(1) { forall n: Int; assume n > 5000; expect true; }' * 20
    found = load_rules(endless).run_tests(Fuel(30_000, 1_000_000))
    assert found.passed == 0
    assert "OUT_OF_FUEL" in str(found.failed[-1])


def test_enormous_types_are_generated_in_bounded_time() -> None:
    lists = "List(" * 11 + "Int" + ")" * 11
    variables = "".join(f"forall x{number}: {lists}; " for number in range(16))
    found = load_rules(f'property "x" cases(5) seed(1) {{ {variables} expect true; }}').run_tests()
    assert found.generated_cases == 5
