"""What operators do: arithmetic, comparisons, `&& ||` and `- !`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill_passport.rules.checked_term import CheckedTerm
from waybill_passport.rules.limits import DIGITS, INTEGER
from waybill_passport.rules.machine import Machine, Pair
from waybill_passport.rules.mistakes import DIVISION_BY_ZERO, NUMBER_TOO_LARGE
from waybill_passport.rules.operators import arithmetic, comparison
from waybill_passport.rules.syntax import Operations, Prefixed
from waybill_passport.rules.types import BOOL, DATE, INT, TEXT, DecimalType, QuantityType, RuleType
from waybill_passport.rules.values import encoder, in_bounds

if TYPE_CHECKING:
    from waybill_passport.rules.checker import Checker


def too_large(of: RuleType) -> str:
    """The sentence for a result that is out of bounds."""
    return f"An Int goes up to {INTEGER}." if of == INT else f"A {of} has at most {DIGITS} digits."


def joining(checker: Checker, term: Operations) -> CheckedTerm:
    """`a + b - c` or `a * b / c`: one operation after the other."""
    first = checker.check(term.first)
    of = first.type
    parts = []
    for sign, operand in term.others:
        right = checker.check(operand)
        found = arithmetic(sign, of, right.type)
        if isinstance(found, str):
            raise checker.mistake(found, operand.at)
        of = found.type
        parts.append((sign, found.calculate, right.run, of, encoder(of), operand.at))

    def run(machine: Machine) -> Pair:
        value, node = first.run(machine)
        for sign, calculate, right, result, encode, at in parts:
            machine.step(at)
            other, other_node = right(machine)
            try:
                value = calculate(value, other)
            except ZeroDivisionError:
                raise machine.failure(DIVISION_BY_ZERO, "This divides by zero.", at) from None
            if result == TEXT:
                machine.text(value, at)
            elif not in_bounds(result, value):
                raise machine.failure(NUMBER_TOO_LARGE, too_large(result), at)
            node = machine.operation(sign, (node, other_node), encode, value, at)
        return value, node

    return CheckedTerm(of, run)


def comparing(checker: Checker, term: Operations) -> CheckedTerm:
    """`a < b`. Comparing lists, records and long texts costs as many steps as they have parts."""
    left = checker.check(term.first)
    sign, operand = term.others[0]
    right = checker.check(operand)
    found = comparison(sign, left.type, right.type)
    if isinstance(found, str):
        raise checker.mistake(found, operand.at)
    calculate, at = found.calculate, operand.at
    simple = left.type in (BOOL, INT, DATE) or isinstance(left.type, DecimalType | QuantityType)

    def run(machine: Machine) -> Pair:
        machine.step(at)
        one, one_node = left.run(machine)
        other, other_node = right.run(machine)
        if not simple:
            machine.weigh(one, at)
        value = calculate(one, other)
        return value, machine.operation(sign, (one_node, other_node), bool, value, at)

    return CheckedTerm(BOOL, run)


def logic(checker: Checker, term: Operations) -> CheckedTerm:
    """`a && b` and `a || b`: what comes after the decisive part is not evaluated."""
    sign = term.others[0][0]
    operands = (term.first, *(operand for _, operand in term.others))
    runs = [checker.expect(each, BOOL, f"Each side of {sign}").run for each in operands]
    decisive, at = sign == "||", term.at

    def run(machine: Machine) -> Pair:
        machine.step(at)
        nodes: list[int] = []
        value = not decisive
        for each in runs:
            value, node = each(machine)
            nodes.append(node)
            if value is decisive:
                break
        return value, machine.operation(sign, tuple(nodes), bool, value, at)

    return CheckedTerm(BOOL, run)


def prefixed(checker: Checker, term: Prefixed) -> CheckedTerm:
    """`-x` and `!x`."""
    sign, at = term.operator, term.at
    if sign == "!":
        code = checker.expect(term.operand, BOOL, "What follows !")
    else:
        code = checker.check(term.operand)
        if code.type != INT and not isinstance(code.type, DecimalType | QuantityType):
            raise checker.mistake(f"There is no -{code.type}.", term.operand.at)
    encode = encoder(code.type)

    def run(machine: Machine) -> Pair:
        machine.step(at)
        value, node = code.run(machine)
        value = not value if sign == "!" else -value
        return value, machine.operation(sign, (node,), encode, value, at)

    return CheckedTerm(code.type, run)
