"""Runs the tests of a package: examples once, properties for each generated case, and makes counterexamples small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from waybill_passport.rules.checked_tests import CheckedCondition, CheckedExpectation, CheckedTest
from waybill_passport.rules.dependencies import emits
from waybill_passport.rules.evaluator import run_field
from waybill_passport.rules.given_facts import stated_facts
from waybill_passport.rules.machine import Fuel, Machine, Tank
from waybill_passport.rules.mistakes import OUT_OF_FUEL, RuleFailure
from waybill_passport.rules.printer import print_text
from waybill_passport.rules.random_values import Draws, generate, simpler
from waybill_passport.rules.syntax import EmissionExpectation, FailureExpectation, PropertyTest
from waybill_passport.rules.values import Json, Value, encoder

if TYPE_CHECKING:
    from waybill_passport.rules.package import RulePackage

Order = Callable[[tuple[str, ...]], list[str]]
"""Fields and all they use, in the order of evaluation."""

_ATTEMPTS = 10
"""How many times as many cases are generated as wanted, where assumptions discard some."""
_SHRINKING = 300
"""Simpler cases that are tried for one counterexample."""


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that does not hold: which, in which line, and why; of a property, the smallest case that was found."""

    name: str
    line: int
    message: str
    counterexample: Mapping[str, Json] | None = None

    def __str__(self) -> str:
        case = "".join(f"\n    {name} = {value}" for name, value in (self.counterexample or {}).items())
        return f'line {self.line}: "{self.name}": {self.message}{case}'


@dataclass(frozen=True, slots=True)
class RuleTestReport:
    """How the tests of a package ended. Cases that assumptions discard do not count as generated."""

    passed: int
    failed: tuple[FailedTest, ...]
    generated_cases: int


class _Broken(NamedTuple):
    """An expectation that a case does not meet."""

    line: int
    message: str
    out_of_fuel: bool = False


class _NotAssumed(Exception):
    """A case that does not meet the assumptions."""


def run_tests(package: RulePackage, fuel: Fuel) -> RuleTestReport:
    """Run all tests of a package on this fuel. When it is used up, the remaining tests fail."""
    runner = RuleTestRun(package, fuel)
    failed = [failure for each in package.tests if (failure := runner.run(each)) is not None]
    return RuleTestReport(len(package.tests) - len(failed), tuple(failed), runner.generated)


class RuleTestRun:
    """The fuel that is left, and the cases so far."""

    def __init__(self, package: RulePackage, fuel: Fuel) -> None:
        self.generated = 0
        self._package = package
        self._steps, self._size = fuel
        self._emitting = tuple(path for path, each in package.declarations.items() if emits(each.body))
        self._orders: dict[tuple[str, ...], list[str]] = {}

    def run(self, checked: CheckedTest) -> FailedTest | None:
        """Nothing if the test passes."""
        if isinstance(checked.test, PropertyTest):
            return self._property(checked, checked.test)
        broken = self._case(checked, {})
        return FailedTest(checked.test.name, broken.line, broken.message) if broken else None

    def _property(self, checked: CheckedTest, test: PropertyTest) -> FailedTest | None:
        held = 0
        for case in range(test.cases * _ATTEMPTS):
            draws = Draws(test.seed, test.name, case)
            values = {each.name: generate(each.type, draws, each.low, each.high) for each in checked.variables}
            self._steps = max(0, self._steps - draws.count)
            try:
                broken = self._case(checked, values)
            except _NotAssumed:
                continue
            self.generated += 1
            if broken:
                values, broken = self._smallest(checked, values, broken)
                return FailedTest(test.name, broken.line, broken.message, _as_json(checked, values))
            held += 1
            if held == test.cases:
                return None
        message = f"Only {held} of {test.cases * _ATTEMPTS} generated cases meet the assumptions; {test.cases} must."
        return FailedTest(test.name, checked.line, message)

    def _smallest(
        self, checked: CheckedTest, values: dict[str, Value], broken: _Broken
    ) -> tuple[dict[str, Value], _Broken]:
        """A case that is as simple as can be found and still breaks the property."""
        tries = 0
        again = not broken.out_of_fuel
        while again:
            again = False
            for candidate in _simpler_cases(checked, values):
                tries += 1
                if tries > _SHRINKING:
                    return values, broken
                found = self._broken(checked, candidate)
                if found is not None and not found.out_of_fuel:
                    values, broken, again = candidate, found, True
                    break
        return values, broken

    def _broken(self, checked: CheckedTest, values: dict[str, Value]) -> _Broken | None:
        try:
            return self._case(checked, values)
        except _NotAssumed:
            return None

    def _case(self, checked: CheckedTest, values: Mapping[str, Value]) -> _Broken | None:
        """Run one case on its own share of the fuel."""
        usual = Fuel()
        tank = Tank(Fuel(min(usual.steps, self._steps), min(usual.size, self._size)))
        before = tank.steps, tank.size
        try:
            return _Case(self._package, checked, values, tank, self._order).broken(self._emitting)
        finally:
            # Every case costs something, so that even empty ones come to an end.
            self._steps -= before[0] - max(tank.steps, 0) + 10
            self._size -= before[1] - max(tank.size, 0) + 1
            self._steps, self._size = max(self._steps, 0), max(self._size, 0)

    def _order(self, paths: tuple[str, ...]) -> list[str]:
        if paths not in self._orders:
            self._orders[paths] = self._package.order_of(paths)
        return self._orders[paths]


class _Case:
    """One evaluation of a test over its facts. Fields are evaluated when an expectation needs them."""

    def __init__(
        self, package: RulePackage, checked: CheckedTest, values: Mapping[str, Value], tank: Tank, order: Order
    ) -> None:
        self._package = package
        self._checked = checked
        self._values = values
        self._order = order
        facts = stated_facts(checked.test.facts, _as_json(checked, values))
        self._machine = Machine(package.source, facts, tank, records=False)
        self._failures: dict[str, RuleFailure] = {}

    def broken(self, emitting: tuple[str, ...]) -> _Broken | None:
        """The first expectation that does not hold."""
        line = self._checked.line
        try:
            self._machine.step(self._checked.test.at)
            if not all(self._holds(each) for each in self._checked.assumptions):
                raise _NotAssumed
            for expectation in self._checked.expectations:
                line = expectation.line
                message = self._message(expectation, emitting)
                if message:
                    return _Broken(line, message)
        except RuleFailure as failure:
            return _Broken(line, str(failure), failure.code == OUT_OF_FUEL)
        return None

    def _message(self, checked: CheckedExpectation, emitting: tuple[str, ...]) -> str:
        """What is wrong, or nothing."""
        expectation = checked.expectation
        if checked.condition is not None:
            return "" if self._holds(checked.condition) else "This does not hold."
        if isinstance(expectation, FailureExpectation):
            try:
                self._evaluate((expectation.path,))
            except RuleFailure as failure:
                wanted = expectation.reason in (failure.code, failure.reason)
                return "" if wanted else f"{expectation.path} fails otherwise: {failure}"
            return f"{expectation.path} does not fail."
        if not isinstance(expectation, EmissionExpectation):
            return ""
        self._evaluate(emitting)
        found = [each["status"] for each in self._machine.compliance if each["rule"] == expectation.rule]
        if expectation.status in found:
            return ""
        said = f"it emits {', '.join(print_text(each) for each in found)}" if found else "nothing is emitted for it"
        return f"{print_text(expectation.rule)} should emit {print_text(expectation.status)}, but {said}."

    def _holds(self, condition: CheckedCondition) -> bool:
        self._evaluate(condition.uses)
        machine = self._machine
        machine.path = ""
        machine.frame = [(None, -1)] * self._checked.slots
        for each in self._checked.variables:
            machine.frame[each.slot] = (self._values[each.name], -1)
        return bool(condition.run(machine)[0])

    def _evaluate(self, paths: tuple[str, ...]) -> None:
        for path in self._order(paths) if paths else ():
            if path in self._failures:
                raise self._failures[path]
            if path not in self._machine.values:
                try:
                    run_field(self._machine, path, self._package.codes[path])
                except RuleFailure as failure:
                    self._failures[path] = failure
                    raise


def _simpler_cases(checked: CheckedTest, values: dict[str, Value]) -> Iterator[dict[str, Value]]:
    for each in checked.variables:
        for candidate in simpler(each.type, values[each.name], each.low, each.high):
            yield {**values, each.name: candidate}


def _as_json(checked: CheckedTest, values: Mapping[str, Value]) -> dict[str, Json]:
    return {each.name: encoder(each.type)(values[each.name]) for each in checked.variables}
