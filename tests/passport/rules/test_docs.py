"""`docs/rules.md` is correct: its packages load, their tests pass, and its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from waybill_passport.rules import Fuel, RuleMistake, limits, load_rules
from waybill_passport.rules.builtins import BUILTINS
from waybill_passport.rules.mistakes import FAILURES
from waybill_passport.rules.package import TEST_FUEL
from waybill_passport.rules.types import TYPE_NAMES
from waybill_passport.rules.units import UNITS

PAGE = (Path(__file__).parents[3] / "docs/rules.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```rules\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("source", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_package_on_the_page_passes_its_tests(source: str) -> None:
    package = load_rules(source)
    report = package.run_tests()
    assert [str(each) for each in report.failed] == []
    assert report.passed == len(package.tests) > 0
    assert load_rules(package.printed_rules + package.printed_tests).rules_hash == package.rules_hash


def test_there_is_an_example_of_every_construct() -> None:
    assert len(EXAMPLES) > 7
    everything = "\n".join(EXAMPLES)
    assert [name for name in BUILTINS if f"{name}(" not in everything] == []
    signs = ["||", "&&", "==", "<", ">", "->", "!", "--", "assume", "forall", "from", "emits", "fails", "assert"]
    assert [sign for sign in signs if sign not in everything] == []
    assert [name for name in TYPE_NAMES if not re.search(rf"\b{name}\b", everything)] == []


def test_the_tables_are_complete() -> None:
    for name in (*BUILTINS, *UNITS, *FAILURES, *TYPE_NAMES):
        assert re.search(rf"`[^`\n]*\b{name}\b", PAGE), f"docs/rules.md does not name {name}"


def test_the_mistake_on_the_page_is_what_is_said() -> None:
    source = re.search(r"^```rules-mistake\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    shown = re.search(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert source
    assert shown
    with pytest.raises(RuleMistake) as raised:
        load_rules(source[1])
    assert str(raised.value) == shown[1].rstrip("\n")


def test_the_limits_on_the_page_are_the_limits() -> None:
    numbers = {int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*", PAGE.partition("## Limits")[2])}
    bounds = {limits.SOURCE, limits.FIELDS, limits.TESTS, limits.CASES, limits.PARAMETERS, limits.NESTING, limits.TREE}
    bounds |= {
        limits.NAME,
        limits.PATH,
        limits.LITERAL,
        limits.TYPE_PARTS,
        limits.TYPE_NESTING,
        *Fuel(),
        TEST_FUEL.steps,
    }
    assert bounds <= numbers
    assert f"{limits.TEXT:,} characters" in PAGE
    assert f"up to {limits.DIGITS} digits" in PAGE
    assert f"(0 to {limits.SCALE})" in PAGE
