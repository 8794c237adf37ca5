"""Whatever the source and the facts are, only RuleMistake and RuleFailure come out, soon, and the same everywhere."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.rule_programs import Program, damaged, payloads, soup
from waybill_passport.rules import Evaluation, Fuel, GivenFacts, RuleFailure, RuleMistake, RulePackage, load_rules
from waybill_passport.rules.parser import parse
from waybill_passport.rules.printer import print_source
from waybill_passport.rules.types import DecimalType, ListType, MapType, OptionType, QuantityType, RecordType, RuleType

SEEDS = st.integers(0, 2**48)
FUEL = Fuel(20_000, 100_000)
CORPUS = Path(__file__).with_name("corpus.rules").read_text()


def conforms(of: RuleType, value: object) -> bool:
    """Whether a payload's value is of its field's type."""
    match of:
        case OptionType():
            return value is None or conforms(of.of, value)
        case ListType():
            return isinstance(value, list) and all(conforms(of.of, each) for each in value)
        case MapType():
            return (
                isinstance(value, dict)
                and list(value) == sorted(value)
                and all(conforms(of.of, v) for v in value.values())
            )
        case RecordType():
            return isinstance(value, dict) and all(conforms(each, value[name]) for name, each in of.fields or ())
        case DecimalType(scale):
            return isinstance(value, str) and len(value.partition(".")[2]) == scale
        case QuantityType(unit):
            return isinstance(value, dict) and value["unit"] == unit and len(value["value"].partition(".")[2]) == 6
    kinds = {"Bool": bool, "Int": int, "Text": str, "Date": str}
    return isinstance(value, kinds[str(of)]) and (str(of) == "Bool" or not isinstance(value, bool))


def outcome(package: RulePackage, facts: GivenFacts, fuel: Fuel) -> Evaluation | RuleFailure:
    """What an evaluation gives. Any other exception is the test's failure."""
    try:
        return package.evaluate(facts, fuel)
    except RuleFailure as failure:
        return failure


def try_program(seed: int, depth: int = 4) -> None:
    package = load_rules(Program(seed, depth).source())
    assert load_rules(package.printed_rules).rules_hash == package.rules_hash
    facts = GivenFacts(payloads(random.Random(seed)))
    result = outcome(package, facts, FUEL)
    if isinstance(result, RuleFailure):
        assert result.path in package.types
        assert 1 <= result.line <= package.source.count("\n") + 1
        assert str(outcome(package, facts, FUEL)) == str(result)
        return
    assert list(result.fields) == [each.path for each in package.fields]
    for path, value in result.fields.items():
        assert conforms(package.types[path], value), (path, value)
    for number, node in enumerate(result.derivation):
        assert all(0 <= each < number for each in node.inputs)
    json.dumps([result.fields, result.compliance, result.derivation], allow_nan=False)
    assert outcome(package, facts, Fuel(FUEL.steps * 10, FUEL.size * 10)) == result, "more fuel changes nothing"


@given(SEEDS)
@settings(max_examples=150)
def test_a_well_typed_program_gives_values_of_its_types_or_a_failure(seed: int) -> None:
    try_program(seed)


@pytest.mark.heavy
@pytest.mark.timeout(900)
@given(SEEDS, st.integers(1, 7))
@settings(max_examples=10_000, suppress_health_check=list(HealthCheck))
def test_ten_thousand_well_typed_programs(seed: int, depth: int) -> None:
    try_program(seed, depth)


@given(SEEDS)
@settings(max_examples=100)
def test_with_less_fuel_a_program_gives_the_same_or_runs_out(seed: int) -> None:
    package = load_rules(Program(seed).source())
    facts = GivenFacts(payloads(random.Random(seed)))
    outcomes = []
    for steps in (1, 10, 100, 1_000, 20_000):
        found = outcome(package, facts, Fuel(steps, 100_000))
        if not isinstance(found, RuleFailure) or found.code != "OUT_OF_FUEL":
            outcomes.append(str(found))
    assert len(set(outcomes)) <= 1


def loaded(source: str | bytes) -> RulePackage | RuleMistake:
    try:
        return load_rules(source)
    except RuleMistake as mistake:
        return mistake


def read(source: str | bytes) -> None:
    """Load a source; if it is a package, run all of it."""
    package = loaded(source)
    if isinstance(package, RuleMistake):
        assert package.line >= 1
        assert package.column >= 1
        assert "^" in str(package)
        str(package).encode()
        return
    assert parse(print_source(parse(package.source))) == parse(package.source)
    package.run_tests(Fuel(20_000, 100_000))
    str(outcome(package, GivenFacts({}), FUEL)).encode()


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_random_bytes_never_crash(data: bytes) -> None:
    read(data)
    read(data.decode("latin-1"))
    read(data.decode("utf-8", "surrogateescape"))


@given(SEEDS)
@settings(max_examples=300)
def test_random_lexemes_never_crash(seed: int) -> None:
    read(soup(random.Random(seed)))


@given(SEEDS)
@settings(max_examples=200)
def test_damaged_packages_never_crash(seed: int) -> None:
    rnd = random.Random(seed)
    read(damaged(rnd.choice([CORPUS, Program(seed, 2).source()]), rnd))


@pytest.mark.heavy
@pytest.mark.timeout(900)
@given(SEEDS)
@settings(max_examples=10_000, suppress_health_check=list(HealthCheck))
def test_ten_thousand_damaged_packages(seed: int) -> None:
    rnd = random.Random(seed)
    read(damaged(rnd.choice([CORPUS, Program(seed, 3).source()]), rnd))
    read(soup(rnd))


@given(SEEDS)
@settings(max_examples=100)
def test_what_is_printed_reads_as_the_same_tree(seed: int) -> None:
    tree = parse(Program(seed, 5).source() + CORPUS)
    assert parse(print_source(tree)) == tree
    assert print_source(parse(print_source(tree))) == print_source(tree)


EVALUATION = """
import random, sys
from support.rule_programs import Program, payloads
from waybill_passport.rules import Fuel, GivenFacts, RuleFailure, load_rules
for seed in range(40):
    package = load_rules(Program(seed).source())
    try:
        print(package.rules_hash, package.evaluate(GivenFacts(payloads(random.Random(seed))), Fuel(20_000, 100_000)))
    except RuleFailure as failure:
        print(failure)
package = load_rules(open(sys.argv[1], encoding="utf-8").read())
print(package.tests_hash, package.run_tests())
"""


def test_other_processes_get_the_same_results() -> None:
    """With another hash seed, locale, time zone and decimal context."""
    told = set()
    for hash_seed, locale, zone in (
        ("0", "C", "UTC"),
        ("1", "de_DE.UTF-8", "Asia/Jakarta"),
        ("77", "tr_TR", "EST5EDT"),
    ):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "LC_ALL": locale, "TZ": zone, "PYTHONIOENCODING": "utf-8"}
        env["PYTHONPATH"] = str(Path(__file__).parents[2])
        corpus = Path(__file__).with_name("corpus.rules")
        context = f"import decimal; decimal.getcontext().prec = {1 + int(hash_seed)}\n" + EVALUATION
        done = subprocess.run(
            [sys.executable, "-c", context, corpus], env=env, capture_output=True, text=True, check=True
        )
        told.add(done.stdout)
    assert len(told) == 1
    assert len(told.pop()) > 1000
