"""A checked rule package: what `load_rules` makes of a source, and what can be done with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from waybill_passport.rules.checked_term import CheckedField
from waybill_passport.rules.checked_tests import CheckedTest, check_test
from waybill_passport.rules.checker import check_field
from waybill_passport.rules.dependencies import cycle, evaluation_order, needed, used_fields
from waybill_passport.rules.evaluator import Evaluation, evaluate_fields
from waybill_passport.rules.machine import FactSource, Fuel, Machine, Tank
from waybill_passport.rules.mistakes import CYCLE_DETECTED, PARSE_ERROR, TYPE_ERROR, RuleMistake
from waybill_passport.rules.package_tests import RuleTestReport, run_tests
from waybill_passport.rules.parser import parse
from waybill_passport.rules.printer import print_field, print_fields, print_tests
from waybill_passport.rules.syntax import FieldDeclaration
from waybill_passport.rules.types import RuleType

TEST_FUEL = Fuel(steps=20_000_000, size=80_000_000)
"""What all tests of a package may use together: half a minute at most."""


@dataclass(frozen=True, slots=True)
class RuleField:
    """A field of the passport, as its package declares it."""

    path: str
    type: str
    printed: str
    uses: tuple[str, ...]
    line: int


@dataclass(frozen=True, eq=False)
class RulePackage:
    """Rules that were read and checked. `fields` are in the order of evaluation."""

    source: str
    fields: tuple[RuleField, ...]
    printed_rules: str
    printed_tests: str
    rules_hash: str
    tests_hash: str
    declarations: Mapping[str, FieldDeclaration]
    types: Mapping[str, RuleType]
    codes: Mapping[str, CheckedField]
    uses: Mapping[str, tuple[str, ...]]
    tests: tuple[CheckedTest, ...]

    def evaluate(self, facts: FactSource, fuel: Fuel = Fuel(), only: Iterable[str] | None = None) -> Evaluation:  # noqa: B008 - it never changes
        """All fields over these facts, or `only` some with those they use. Raises RuleFailure."""
        machine = Machine(self.source, facts, Tank(fuel), records=True)
        wanted = self.order_of(only)
        places = {path: self.declarations[path].at for path in wanted}
        return evaluate_fields(machine, wanted, self.codes, self.types, places)

    def order_of(self, paths: Iterable[str] | None) -> list[str]:
        """These fields and what they use, in the order of evaluation; without paths, all."""
        chosen = None if paths is None else needed(paths, self.uses)
        return [each.path for each in self.fields if chosen is None or each.path in chosen]

    def run_tests(self, fuel: Fuel = TEST_FUEL) -> RuleTestReport:
        """Run all examples and properties. Nothing is raised: what fails is in the report."""
        return run_tests(self, fuel)


def load_rules(source: str | bytes) -> RulePackage:
    """Read and check a package. Raises RuleMistake."""
    if isinstance(source, bytes):
        source = _decoded(source)
    tree = parse(source)
    declarations = _by_path(source, tree.fields)
    types = {path: each.type for path, each in declarations.items()}
    codes = {path: check_field(source, types, each) for path, each in declarations.items()}
    uses = {path: used_fields(each.body) for path, each in declarations.items()}
    order = evaluation_order(uses)
    if len(order) < len(uses):
        ring = cycle(uses, order)
        raise RuleMistake(
            CYCLE_DETECTED, f"These fields use each other: {_shown(ring)}.", source, declarations[ring[0]].at
        )
    tests = tuple(check_test(source, types, each) for each in tree.tests)
    printed_rules = print_fields(tuple(declarations[path] for path in order))
    printed_tests = print_tests(tree.tests)
    return RulePackage(
        source=source,
        fields=tuple(_field(source, declarations[path], uses[path]) for path in order),
        printed_rules=printed_rules,
        printed_tests=printed_tests,
        rules_hash=hashlib.sha256(printed_rules.encode()).hexdigest(),
        tests_hash=hashlib.sha256(printed_tests.encode()).hexdigest(),
        declarations=declarations,
        types=types,
        codes=codes,
        uses=uses,
        tests=tests,
    )


def _decoded(source: bytes) -> str:
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError as error:
        readable = source[: error.start].decode("utf-8")
        raise RuleMistake(PARSE_ERROR, "The rules are not UTF-8 from here on.", readable, len(readable)) from None


def _shown(ring: list[str]) -> str:
    names = ring if len(ring) <= 8 else [*ring[:7], f"{len(ring) - 8} more", ring[-1]]
    return " -> ".join(names)


def _by_path(source: str, fields: Iterable[FieldDeclaration]) -> dict[str, FieldDeclaration]:
    """The fields by path. A field cannot lie inside of another: it would have no place in the payload."""
    declarations: dict[str, FieldDeclaration] = {}
    for each in fields:
        if each.path in declarations:
            raise RuleMistake(TYPE_ERROR, f"There is already a field {each.path}.", source, each.at)
        declarations[each.path] = each
    for path, each in declarations.items():
        parts = path.split(".")
        for length in range(1, len(parts)):
            outer = ".".join(parts[:length])
            if outer in declarations:
                message = f"{path} would lie inside of the field {outer}, which has a value of its own."
                raise RuleMistake(TYPE_ERROR, message, source, each.at)
    return declarations


def _field(source: str, declaration: FieldDeclaration, uses: tuple[str, ...]) -> RuleField:
    line = source.count("\n", 0, declaration.at) + 1
    return RuleField(declaration.path, str(declaration.type), print_field(declaration), uses, line)
