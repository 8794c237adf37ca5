"""Checks examples and properties: their expectations, the names in their facts, and the bounds of what is generated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from waybill_passport.rules.checked_term import Run
from waybill_passport.rules.checker import Checker
from waybill_passport.rules.dependencies import used_fields
from waybill_passport.rules.limits import QUANTITY_SCALE
from waybill_passport.rules.mistakes import RuleMistake, did_you_mean
from waybill_passport.rules.numbers import rescaled
from waybill_passport.rules.random_values import bounded
from waybill_passport.rules.syntax import (
    AnyExpectation,
    Application,
    DecimalLiteral,
    Expectation,
    FactTemplate,
    FailureExpectation,
    Forall,
    IntLiteral,
    PackageTest,
    Prefixed,
    PropertyTest,
    TemplateList,
    TemplateObject,
    TemplateVariable,
    Term,
    TextLiteral,
)
from waybill_passport.rules.types import BOOL, DATE, INT, DecimalType, RuleType, closed
from waybill_passport.rules.values import Value, day, in_bounds


class GeneratedValue(NamedTuple):
    """What a property generates, and where its expressions find it."""

    name: str
    type: RuleType
    slot: int
    low: Value
    high: Value


class CheckedCondition(NamedTuple):
    """A condition, and the fields that must be evaluated first."""

    run: Run
    uses: tuple[str, ...]


class CheckedExpectation(NamedTuple):
    expectation: AnyExpectation
    condition: CheckedCondition | None
    line: int


class CheckedTest(NamedTuple):
    test: PackageTest
    line: int
    slots: int
    variables: tuple[GeneratedValue, ...]
    assumptions: tuple[CheckedCondition, ...]
    expectations: tuple[CheckedExpectation, ...]


def check_test(source: str, fields: Mapping[str, RuleType], test: PackageTest) -> CheckedTest:
    """The test with the code of its expressions, or a mistake."""
    checker = Checker(source, fields)
    variables: tuple[GeneratedValue, ...] = ()
    assumptions: tuple[CheckedCondition, ...] = ()
    if isinstance(test, PropertyTest):
        variables = tuple(_variable(checker, each) for each in test.variables)
        assumptions = tuple(_condition(checker, each) for each in test.assumptions)
    known = {each.name for each in variables}
    for fact in test.facts:
        for name in _names(fact.payload):
            if name.name not in known:
                hint = did_you_mean(name.name, known)
                raise checker.mistake(f"There is no generated value '{name.name}'.{hint}", name.at)
    expectations = tuple(_expectation(checker, each) for each in test.expectations)
    return CheckedTest(test, _line(source, test.at), checker.slots, variables, assumptions, expectations)


def _line(source: str, at: int) -> int:
    return source.count("\n", 0, at) + 1


def _condition(checker: Checker, term: Term) -> CheckedCondition:
    code = checker.expect(term, BOOL, "What a test assumes or expects")
    return CheckedCondition(code.run, used_fields(term))


def _expectation(checker: Checker, expectation: AnyExpectation) -> CheckedExpectation:
    condition = None
    if isinstance(expectation, Expectation):
        condition = _condition(checker, expectation.condition)
    elif isinstance(expectation, FailureExpectation) and expectation.path not in checker.fields:
        hint = did_you_mean(expectation.path, checker.fields)
        raise checker.mistake(f"There is no field '{expectation.path}'.{hint}", expectation.at)
    return CheckedExpectation(expectation, condition, _line(checker.source, expectation.at))


def _names(template: FactTemplate) -> Iterator[TemplateVariable]:
    waiting: list[FactTemplate] = [template]
    while waiting:
        each = waiting.pop()
        if isinstance(each, TemplateVariable):
            yield each
        elif isinstance(each, TemplateList):
            waiting += each.items
        elif isinstance(each, TemplateObject):
            waiting += [value for _, value in each.entries]


def _variable(checker: Checker, variable: Forall) -> GeneratedValue:
    if not closed(variable.type):
        raise checker.mistake("What is generated must have a type that says everything.", variable.at)
    low = high = None
    if variable.low is not None and variable.high is not None:
        if not bounded(variable.type):
            raise checker.mistake(f"{variable.type} is not generated between bounds.", variable.at)
        low, high = (_bound(checker, variable.type, each) for each in (variable.low, variable.high))
        if low > high:
            raise checker.mistake("The smallest value is larger than the largest one.", variable.low.at)
    slot = checker.bind(variable.name, variable.type, variable.at)
    return GeneratedValue(variable.name, variable.type, slot, low, high)


def _bound(checker: Checker, of: RuleType, term: Term) -> Value:
    """A bound is a literal: a number that fits the type, or a date."""
    if of == DATE:
        return _day(checker, term)
    literal, sign = (term.operand, -1) if isinstance(term, Prefixed) and term.operator == "-" else (term, 1)
    scale = 0 if of == INT else of.scale if isinstance(of, DecimalType) else QUANTITY_SCALE
    number = None
    if isinstance(literal, IntLiteral):
        number = rescaled(literal.value, 0, scale)
    elif isinstance(literal, DecimalLiteral) and literal.scale <= scale:
        number = rescaled(literal.digits, literal.scale, scale)
    if number is None or not in_bounds(of, number):
        raise checker.mistake(f"A bound of {of} is a number with at most {scale} decimal places.", term.at)
    return sign * number


def _day(checker: Checker, term: Term) -> str:
    if isinstance(term, Application) and term.function == "date" and len(term.arguments) == 1:
        argument = term.arguments[0]
        if isinstance(argument, TextLiteral) and day(argument.text):
            return argument.text
    raise _no_day(checker, term)


def _no_day(checker: Checker, term: Term) -> RuleMistake:
    return checker.mistake('A bound of Date is a day: date("2027-02-18").', term.at)
