"""Loading is bounded: whatever is accepted can be checked, printed and evaluated on a small part of Python's stack."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from waybill_passport.rules import GivenFacts, RuleMistake, load_rules

NESTS: dict[str, Callable[[str, int], str]] = {
    "parentheses": lambda inner, _: f"(1 + 2 * ({inner}))",
    "calls": lambda inner, _: f"length([{inner}])",
    "functions": lambda inner, n: f"fold([1], 1, (a{n}, b{n}) -> {inner})",
    "conditions": lambda inner, _: f"(if true || false && 1 == 2 + 3 * - {inner} then 1 else 2)",
    "lets": lambda inner, n: f"(let a{n} = {inner}; a{n})",
    "signs": lambda inner, _: f"- {inner}",
    "records": lambda inner, _: f"{{a: {inner}}}.a",
}


@contextmanager
def frames(most: int) -> Iterator[None]:
    """Allow so many frames more than there are."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + most)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("nest", NESTS)
def test_the_deepest_program_needs_few_frames(nest: str) -> None:
    deepest = 0
    inner = "1"
    for depth in range(1, 200):
        inner = NESTS[nest](inner, depth)
        try:
            with frames(450):
                package = load_rules(f"field a: Int = {inner};")
                package.evaluate(GivenFacts({}))
                load_rules(package.printed_rules)
        except RuleMistake as mistake:
            assert "levels" in mistake.message  # noqa: PT017 - how it ends, after many that were accepted
            break
        deepest = depth
    assert 5 < deepest < 100


def test_a_package_may_be_empty_and_has_hashes() -> None:
    package = load_rules("-- nothing\n")
    assert package.fields == ()
    assert len(package.rules_hash) == len(package.tests_hash) == 64
    assert package.evaluate(GivenFacts({})).fields == {}
    assert package.run_tests().generated_cases == 0


def test_a_field_says_what_it_is() -> None:
    package = load_rules('field b: Int = field("a") + 1;\n\nfield a: Int = 1;')
    assert [(each.path, each.type, each.uses, each.line) for each in package.fields] == [
        ("a", "Int", (), 3),
        ("b", "Int", ("a",), 1),
    ]
    assert package.fields[1].printed == 'field b: Int = field("a") + 1;'


def test_a_long_package_is_refused_before_it_is_read() -> None:
    with pytest.raises(RuleMistake, match="more than 262144 characters"):
        load_rules(" " * 262_145)
