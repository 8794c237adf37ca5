"""What rules compute, where they fail, and what is recorded."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from waybill_passport.canonical import canonical
from waybill_passport.facts import Fact, Snapshot
from waybill_passport.rules import Evaluation, Fuel, GivenFacts, RuleFailure, load_rules

FACTS: dict[tuple[str, str], Any] = {
    ("Battery", "battery:1"): {"capacity": Decimal("52.5"), "name": "é", "made": "2026-01-31", "tags": ["a", None]},
    ("Part", "part:2"): {"mass": {"value": 500, "unit": "unit:gram"}, "name": "case"},
    ("Part", "part:1"): {"mass": "1.25", "name": "cell", "share": 0},
    ("Part", "other:1"): {"mass": 100},
}


def evaluate(source: str, **fuel: int) -> Evaluation:
    return load_rules(source).evaluate(GivenFacts(FACTS), Fuel(**fuel))


def value(of: str, term: str) -> Any:
    return evaluate(f"field it: {of} = {term};").fields["it"]


def failure(of: str, term: str) -> RuleFailure:
    with pytest.raises(RuleFailure) as raised:
        value(of, term)
    assert raised.value.path == "it"
    return raised.value


@pytest.mark.parametrize(
    ("of", "term", "expected"),
    [
        ("Int", "1 + 2 * 3 - 4", 3),
        ("Int", "-(2 - 5) * 2", 6),
        ("Dec(2)", "1.00 / 3", "0.33"),
        ("Dec(2)", "0.25 * 0.5", "0.12"),
        ("Dec(2)", "0.35 * 0.5", "0.18"),
        ("Dec(4)", "1.0000 / 3.0", "0.3333"),
        ("Dec(1)", "toDec(1, 0.25) + toDec(1, 0.35)", "0.6"),
        ("Dec(3)", 'toDec(3, toQty("kg", 1.23456))', "1.235"),
        ("Dec(2)", "sumDec(2, [0.005, 0.005, 0.005])", "0.02"),
        ("Dec(3)", "-0.001 * 1.00 + 0.000 - toDec(3, 0)", "-0.001"),
        ("Qty(kg)", 'toQty("kg", 10) * toQty("pct", 12.5)', {"unit": "kg", "value": "1.250000"}),
        ("Qty(gCO2e_per_kWh)", 'toQty("gCO2e", 100) / toQty("kWh", 3)',
         {"unit": "gCO2e_per_kWh", "value": "33.333333"}),
        ("Dec(6)", 'toQty("kg", 1) / toQty("kg", 3)', "0.333333"),
        ("Bool", "1.5 == 1.50 && 1.5 < 1.51", True),
        ("Bool", '"a" < "b" && date("2026-01-31") < date("2026-02-01") && [1, 2] == [1, 2]', True),
        ("Text", 'toText(1.50) + " " + toText(toQty("kg", 2)) + toText(true) + toText(date("2027-02-18"))',
         "1.50 2.000000 kgtrue2027-02-18"),
        ("Opt(Int)", "none(Int)", None),
        ("List(Int)", "filter(map([1, 2, 3], x -> x * x), x -> x > 1)", [4, 9]),
        ("Int", "fold([1, 2, 3], 10, (total, x) -> total - x)", 4),
        ("Map(Text, Int)", '{"b": 1, "a": 2}', {"a": 2, "b": 1}),
        ("List(Text)", 'mapKeys({"b": 1, "a": 2})', ["a", "b"]),
        ("Int", 'unwrapOr(mapGet({"b": 1}, "c"), 7)', 7),
        ("Record(a: Int, b: Opt(Text))", "{a: 1, b: none(Text)}", {"a": 1, "b": None}),
        ("Int", "{a: {b: 5}}.a.b", 5),
        ("Text", 'unwrapOr(recordGet({a: "x"}, "a"), "y")', "x"),
        ("Int", "if 1 > 2 then 1 else if 2 > 1 then 2 else 3", 2),
        ("Bool", "isSome(none(Int)) || !false", True),
        ("Bool", "false && 1.0 / 0.0 == 1.0", False),
        ("List(Text)", 'map(getFactsByPrefix("Part", "part:"), p -> unwrapOr(recordGet(p, "name", Text), ""))',
         ["cell", "case"]),
        ("List(Record(mass: Qty(kg), share: Opt(Dec(1))))",
         'getFactsByPrefix("Part", "part:", Record(mass: Qty(kg), share: Opt(Dec(1))))',
         [{"mass": {"unit": "kg", "value": "1.250000"}, "share": "0.0"},
          {"mass": {"unit": "kg", "value": "0.500000"}, "share": None}]),
        ("Bool", 'isSome(getFact("Battery", "battery:" + toText(1))) && !isSome(getFact("Battery", "battery:2"))',
         True),
    ],
)  # fmt: skip
def test_values(of: str, term: str, expected: Any) -> None:
    assert value(of, term) == expected


@pytest.mark.parametrize(
    ("of", "term", "code", "message"),
    [
        ("Dec(2)", "1.00 / toDec(2, 0)", "DIVISION_BY_ZERO", "This divides by zero."),
        ("Int", "9007199254740991 + 1", "NUMBER_TOO_LARGE", "An Int goes up to"),
        ("Int", "-9007199254740991 - 1", "NUMBER_TOO_LARGE", "An Int goes up to"),
        ("Dec(2)", "99999999999999999999999999999999999.99 * 1000.0", "NUMBER_TOO_LARGE", "at most 38 digits"),
        ("Int", 'requireSome(none(Int), "E7", "It is needed.")', "MISSING_FACT", "It is needed."),
        ("Int", 'assert(1 > 2, "E8", "One is less."); 1', "ASSERTION_FAILED", "One is less."),
        ("Opt(Int)", 'recordGet(requireSome(getFact("Battery", "battery:1"), "A", "a"), "name", Int)',
         "FACT_TYPE_MISMATCH", "name: The rules expect Int, and the fact has a text"),
        ("Opt(List(Text))", 'recordGet(requireSome(getFact("Battery", "battery:1"), "A", "a"), "tags", List(Text))',
         "FACT_TYPE_MISMATCH", "null"),
        ("Bool", 'isSome(getFact("Battery", "battery:1", Record(volts: Int)))', "FACT_TYPE_MISMATCH", "no 'volts'"),
    ],
)  # fmt: skip
def test_failures_say_where_and_why(of: str, term: str, code: str, message: str) -> None:
    found = failure(of, term)
    assert found.code == code
    assert message in found.message
    assert found.reason in str(found)


def test_a_failure_names_the_line_and_the_code_of_the_rules() -> None:
    with pytest.raises(RuleFailure, match=r"ASSERTION_FAILED in b\.c, line 3: E9: Never\.") as raised:
        evaluate('field a: Int = 1;\nfield b.c: Int =\n  assert(false, "E9", "Never.");\n  1;')
    assert (raised.value.reason, raised.value.line) == ("E9", 3)


def test_fields_come_in_the_order_of_their_needs_and_then_of_the_alphabet() -> None:
    source = 'field a: Int = field("z") + 1; field m: Int = 2; field z: Int = 1; field b: Int = field("m");'
    package = load_rules(source)
    assert [each.path for each in package.fields] == ["m", "b", "z", "a"]
    assert package.evaluate(GivenFacts({})).fields == {"m": 2, "b": 2, "z": 1, "a": 2}
    assert list(package.evaluate(GivenFacts({}), only=["a"]).fields) == ["z", "a"]


def test_order_and_comments_of_the_source_change_no_hash_and_no_result() -> None:
    one = load_rules('field a: Int = field("b"); field b: Int = (1) + 2; -- three')
    other = load_rules('field b: Int =\n1+2 ;\nfield a: Int = field("b");')
    assert one.rules_hash == other.rules_hash != load_rules("field b: Int = 3;").rules_hash
    assert one.evaluate(GivenFacts({})) == other.evaluate(GivenFacts({}))
    assert one.tests_hash == load_rules("").tests_hash


def test_the_derivation_leads_from_facts_to_fields() -> None:
    result = evaluate(
        'field mass: Qty(kg) = sumQty("kg", map(getFactsByPrefix("Part", "part:"),'
        ' p -> unwrapOr(recordGet(p, "mass", Qty(kg)), toQty("kg", 0))));\n'
        'field twice: Qty(kg) = assert(true, "E1", "e"); field("mass") * 2;\n'
        'field told: Bool = emitCompliance("R", "PASS", "seen");'
    )
    kinds = [(node.kind, node.label, node.inputs) for node in result.derivation]
    assert kinds[:3] == [("FACT_GET", "Part part:*", ()), ("OP", "map", (0,)), ("OP", "sumQty", (1,))]
    assert {kind for kind, _, _ in kinds} == {"CONST", "FACT_GET", "FIELD_REF", "OP", "ASSERT", "COMPLIANCE_EMIT"}
    assert result.field_nodes["mass"] == 2
    twice = result.derivation[result.field_nodes["twice"]]
    assert [result.derivation[each].kind for each in twice.inputs] == ["FIELD_REF", "CONST"]
    assert result.compliance == [{"rule": "R", "status": "PASS", "evidence": "seen"}]


def test_what_items_use_from_elsewhere_is_an_input_of_the_lists_operation() -> None:
    result = evaluate(
        'field unit: Int = 3;\nfield it: List(Int) = let k = 5; map([1, 2], x -> x * field("unit") + k +'
        ' length(unwrapOr(recordGet(requireSome(getFact("Battery", "battery:1"), "A", "a"), "name", Text), "")));'
    )
    root = result.derivation[result.field_nodes["it"]]
    used = [(result.derivation[each].kind, result.derivation[each].label) for each in root.inputs]
    assert used == [("OP", "list"), ("FIELD_REF", "unit"), ("CONST", "Int"), ("FACT_GET", "Battery battery:1")]
    assert result.derivation[root.inputs[2]].value_json == 5
    assert len([node for node in result.derivation if node.kind == "FACT_GET"]) == 1


def test_a_snapshot_is_a_source_of_facts_and_what_comes_out_is_canonical() -> None:
    snapshot = Snapshot("s-1", [Fact("Part", "part:2", {"mass": "2.5"}), Fact("Part", "part:1", {"mass": "1.25"})])
    package = load_rules(
        'field masses: List(Dec(2)) = map(getFactsByPrefix("Part", "part:"),'
        ' p -> unwrapOr(recordGet(p, "mass", Dec(2)), 0.00));\n'
        'field told: Bool = emitCompliance("Art. 7", "PASS", toText(length(field("masses"))));'
    )
    result = package.evaluate(snapshot)
    assert result.fields["masses"] == ["1.25", "2.50"]
    nodes = [[node.kind, node.label, list(node.inputs), node.value_json] for node in result.derivation]
    assert canonical([dict(result.fields), list(result.compliance), nodes])


def test_a_long_value_is_shown_by_its_hash() -> None:
    facts = GivenFacts({("Part", f"{number:04}"): {"n": number} for number in range(1000)})
    result = load_rules('field n: Int = length(getFactsByPrefix("Part", ""));').evaluate(facts)
    assert result.fields == {"n": 1000}
    shown = result.derivation[0].value_json
    assert set(shown) == {"characters", "sha256"}
    assert len(shown["sha256"]) == 64


NESTED = "fold(xs, 0, (a, x) -> fold(xs, a, (b, y) -> fold(xs, b, (c, z) -> fold(xs, c, (d, w) -> d + 1))))"
BOMBS = {
    "steps": f"let xs = [{', '.join('1' for _ in range(60))}]; {NESTED}",
    "data": "let a = [1, 2]; " + "".join(
        f"let a{number} = [{', '.join([f'a{number - 1}' if number else 'a'] * 60)}]; " for number in range(8)
    ) + "if a7 == a7 then 1 else 2",
}  # fmt: skip


@pytest.mark.parametrize("what", BOMBS)
def test_no_rule_runs_for_ever(what: str) -> None:
    found = failure("Int", BOMBS[what])
    assert found.code == "OUT_OF_FUEL"
    assert what in found.message


def test_texts_are_bounded() -> None:
    doubling = "".join(f"let a{number + 1} = a{number} + a{number}; " for number in range(20))
    assert failure("Text", f'let a0 = "{"x" * 100}"; {doubling}a20').code == "VALUE_TOO_LARGE"


def test_fuel_is_a_parameter() -> None:
    assert evaluate("field a: Int = 1 + 1;", steps=3).fields == {"a": 2}
    with pytest.raises(RuleFailure, match="OUT_OF_FUEL in a, line 1"):
        evaluate("field a: Int = 1 + 1;", steps=2)


@pytest.mark.parametrize("payload", [1.5, {1: 2}, {"a": object()}, {"a": {"b": 1.5}}, {"a": 10**90}, "x", [1]])
def test_a_fact_that_is_no_exact_json_object_is_refused(payload: Any) -> None:
    package = load_rules('field a: Bool = isSome(getFact("A", "b"));')
    with pytest.raises(RuleFailure, match=r"FACT_TYPE_MISMATCH|NUMBER_TOO_LARGE"):
        package.evaluate(GivenFacts({("A", "b"): payload}))


def test_a_deep_fact_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"a": deep}
    package = load_rules('field a: Bool = isSome(getFact("A", "b"));')
    with pytest.raises(RuleFailure, match="nested more than 64 levels"):
        package.evaluate(GivenFacts({("A", "b"): deep}))
    while deep:
        deep = deep["a"]  # taken apart step by step, as Python's own clean-up would recurse
