"""A mistake shows its line and a caret, and suggests the nearest name."""

from __future__ import annotations

import pytest

from waybill_passport.rules import RuleMistake, load_rules
from waybill_passport.rules.mistakes import did_you_mean


def mistake(source: str) -> RuleMistake:
    with pytest.raises(RuleMistake) as raised:
        load_rules(source)
    return raised.value


def test_a_mistake_shows_line_column_and_caret() -> None:
    found = mistake('field mass: Qty(kg) =\n\tlet total = toQty("kg", 1);\n\ttotl;\n')
    assert (found.code, found.line, found.column) == ("RULE_TYPE_ERROR", 3, 2)
    assert str(found) == (
        "RULE_TYPE_ERROR, line 3, column 2: There is no value 'totl'. Did you mean 'total'?\n  3 |  totl;\n    |  ^^^^"
    )


def test_a_long_line_is_shown_around_the_place() -> None:
    found = mistake(f"field a: Int = {'1 + ' * 500}oops{' + 1' * 500};")
    line, caret = str(found).splitlines()[1:]
    assert len(line) < 120
    assert line[caret.index("^") :].startswith("oops")


def test_the_end_is_a_place_too() -> None:
    assert str(mistake("field a: Int =")).endswith("^")
    assert (
        mistake("field a: Int = 1").message == "Here should be ';' at the end of the field a, not the end of the rules."
    )


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("filed a: Int = 1;", "PARSE", "Did you mean 'field'?"),
        ("field a: Itn = 1;", "PARSE", "Did you mean 'Int'?"),
        ("field a: Qty(kw) = 1;", "PARSE", "Did you mean 'kWh'?"),
        ("field a: Opt(Opt(Int)) = 1;", "PARSE", "An Opt cannot hold another Opt."),
        ("field a: Dec(19) = 1;", "PARSE", "This is larger than 18"),
        ('field a: Text = "x', "PARSE", "This text does not end in its line."),
        ('field a: Text = "\\q";', "PARSE", "There is no escape \\q."),
        ('field a: Text = "\\u0000";', "PARSE", "No text may hold this character."),
        ("field a: Bool = true & false;", "PARSE", "Write '&&'."),
        ("field a: Bool = 1 < 2 < 3;", "PARSE", "Join them with &&."),
        ("field a: Int = 1 + if true then 1 else 2;", "PARSE", "Put parentheses around 'if …'"),
        ("field a: Int = let if = 1; 2;", "PARSE", "'if' is a word of the language."),
        ("field a: Int = " + "9" * 39 + ";", "PARSE", "A number has fewer than 38 digits."),
        ("field a: Int = " + "(" * 60 + "1", "PARSE", "nested more than 50 levels"),
        ("field a: Int = " + "- " * 90 + "1;", "PARSE", "more than 80 levels deep"),
        ('example "x" { }', "PARSE", "a test expects something"),
        ('property "x" cases(0) seed(1) { expect true; }', "PARSE", "at least one case"),
        ('property "x" case(5) seed(1) { expect true; }', "PARSE", "Did you mean 'cases'?"),
        ('example "x" { fact "A" "b" = {"a": x}; expect true; }', "PARSE", "Here should be a JSON value"),
        ("field a: Int = 1; field a: Int = 2;", "TYPE", "There is already a field a."),
        ("field a: Int = 1; field a.b: Int = 2;", "TYPE", "would lie inside of the field a"),
        ("field a: Int = true;", "TYPE", "The field a must be Int, but this is Bool."),
        ("field a: Dec(2) = 1;", "TYPE", "Write toDec(2, …)."),
        ('field a: Qty(kg) = toQty("kg", 1) + toQty("g", 1);', "TYPE", 'convert("g", "kg", …)'),
        ("field a: Dec(2) = 1.0 + 1.00;", "TYPE", "the same number of decimal places: toDec(2, …)"),
        ("field a: Int = 1 / 2;", "TYPE", "Say how many decimal places the quotient has"),
        ('field a: Qty(each) = toQty("each", 1) * toQty("pct", 1);', "TYPE", "There is no Qty(each) * Qty(pct)."),
        ('field a: Qty(kg) = convert("kWh", "kg", toQty("kWh", 1));', "TYPE", "does not convert into kg, but into Wh."),
        ('field a: Qty(kg) = toQty("kgs", 1);', "TYPE", "Did you mean 'kg'?"),
        ("field a: Int = 9007199254740992;", "TYPE", "too large for Int"),
        ("field a: Bool = 1 == 1.0;", "TYPE", "There is no Int == Dec(1)."),
        ('field a: Bool = {x: 1} < {x: 2};', "TYPE", "cannot be compared"),
        ("field a: Int = unwrpOr(some(1), 2);", "TYPE", "Did you mean 'unwrapOr'?"),
        ("field a: Int = length(1, 2);", "TYPE", "This has 2 arguments. It is length("),
        ("field a: Int = map;", "TYPE", "'map' is a function"),
        ("field a: Int = let a = 1; let a = 2; a;", "TYPE", "There is already a value 'a'."),
        ("field a: Int = (let b = 1; b) + b;", "TYPE", "There is no value 'b'."),
        ('field a.b: Int = 1; field c: Int = field("a.bb");', "TYPE", "Did you mean 'a.b'?"),
        ("field mass: Int = 1; field c: Int = mass;", "TYPE", 'Write field("…")'),
        ('field a: Date = date("2027-02-30");', "TYPE", "no day of the calendar"),
        ("field a: List(Int) = [];", "TYPE", "An empty list needs a type"),
        ("field a: Record = {x: 1};", "TYPE", "A field's type says what its records hold"),
        ('field a: Int = requireSome(getFact("A", "b"), "X", "x").n;', "TYPE", 'recordGet(…, "n", Text)'),
        ("field a: Int = {name: 1}.nme;", "TYPE", "Did you mean 'name'?"),
        ("field a: Int = (x -> x);", "PARSE", "Here should be ')'"),
        ("field a: Int = length(x -> x);", "TYPE", "Only map, filter and fold take"),
        ("field a: List(Int) = map([1], (a, b) -> a);", "TYPE", "must be 'x -> …'"),
        ("field a: Int = fold([1], 0, (a, b) -> true);", "TYPE", "Each step of fold must be Int"),
        ("field a: Opt(Int) = 1;", "TYPE", "Write some(…)."),
        ("field a: Int = some(1);", "TYPE", "Write requireSome("),
        ('example "x" { expect fails b "E"; }', "TYPE", "There is no field 'b'."),
        ('property "x" cases(1) seed(1) { forall x: Int from 2 to 1; expect true; }', "TYPE", "larger than the"),
        ('property "x" cases(1) seed(1) { forall x: Int; fact "A" "b" = {"a": y}; expect true; }', "TYPE", "value 'y'"),
        ('field a: Int = field("b"); field b: Int = field("c"); field c: Int = field("b");', "CYCLE", "b -> c -> b"),
    ],
)  # fmt: skip
def test_mistakes_say_what_to_do(source: str, code: str, message: str) -> None:
    found = mistake(source)
    assert found.code in {"PARSE": "RULE_PARSE_ERROR", "TYPE": "RULE_TYPE_ERROR", "CYCLE": "RULE_CYCLE_DETECTED"}[code]
    assert message in found.message


def test_a_name_is_suggested_only_if_it_is_near() -> None:
    names = ["battery.mass", "battery.capacity", "pcf"]
    assert did_you_mean("batery.mass", names) == " Did you mean 'battery.mass'?"
    assert did_you_mean("pfc", names) == " Did you mean 'pcf'?"
    assert did_you_mean("something", names) == ""


def test_bytes_that_are_no_text_are_a_mistake() -> None:
    with pytest.raises(RuleMistake, match="not UTF-8"):
        load_rules(b"field a: Int = 1;\n\xff")
    assert load_rules("field ä: Int = 1;".replace("ä", "a").encode()).fields[0].path == "a"
