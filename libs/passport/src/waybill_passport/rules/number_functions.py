"""Functions on numbers and quantities. Each rounds at most once, half to even."""

from __future__ import annotations

from collections.abc import Callable

from waybill_passport.rules.arguments import Arguments
from waybill_passport.rules.checked_term import CheckedTerm
from waybill_passport.rules.limits import QUANTITY_SCALE
from waybill_passport.rules.machine import Machine, Pair
from waybill_passport.rules.mistakes import NUMBER_TOO_LARGE
from waybill_passport.rules.numbers import divided, rescaled
from waybill_passport.rules.operator_code import too_large
from waybill_passport.rules.types import INT, DecimalType, QuantityType, RuleType
from waybill_passport.rules.units import conversion, convertible
from waybill_passport.rules.values import encoder, in_bounds


def to_dec(arguments: Arguments) -> CheckedTerm:
    scale, inner = arguments.scale(0), arguments.any(1)
    given = _scale(inner.type)
    if given is None:
        raise arguments.mistake(f"{inner.type} is no number.", arguments.place(1))
    return _computed(arguments, "toDec", DecimalType(scale), inner, lambda value: rescaled(value, given, scale))


def to_qty(arguments: Arguments) -> CheckedTerm:
    unit, inner = arguments.unit(0), arguments.any(1)
    given = _scale(inner.type)
    if given is None or isinstance(inner.type, QuantityType):
        raise arguments.mistake(f"{inner.type} is no number without a unit.", arguments.place(1))
    calculate: Callable[[int], int] = lambda value: rescaled(value, given, QUANTITY_SCALE)  # noqa: E731
    return _computed(arguments, "toQty", QuantityType(unit), inner, calculate)


def convert(arguments: Arguments) -> CheckedTerm:
    source, target = arguments.unit(0), arguments.unit(1)
    factors = conversion(source, target)
    if factors is None:
        others = ", ".join(convertible(source)) or "nothing else"
        raise arguments.mistake(f"{source} does not convert into {target}, but into {others}.", arguments.at)
    inner = arguments.of(2, QuantityType(source))
    numerator, denominator = factors
    return _computed(
        arguments, "convert", QuantityType(target), inner, lambda value: divided(value * numerator, denominator)
    )


def _scale(of: RuleType) -> int | None:
    """How many decimal places numbers of this type have."""
    if of == INT:
        return 0
    if isinstance(of, DecimalType):
        return of.scale
    return QUANTITY_SCALE if isinstance(of, QuantityType) else None


def _computed(
    arguments: Arguments, label: str, of: RuleType, inner: CheckedTerm, calculate: Callable[[int], int]
) -> CheckedTerm:
    encode, at = encoder(of), arguments.at

    def run(machine: Machine) -> Pair:
        machine.step(at)
        value, node = inner.run(machine)
        value = calculate(value)
        if not in_bounds(of, value):
            raise machine.failure(NUMBER_TOO_LARGE, too_large(of), at)
        return value, machine.operation(label, (node,), encode, value, at)

    return CheckedTerm(of, run)


def sum_dec(arguments: Arguments) -> CheckedTerm:
    scale = arguments.scale(0)
    items, of = arguments.list_of_any(1)
    if not isinstance(of, DecimalType):
        raise arguments.mistake(f"Argument 2 must be a List of Decs, but its items are {of}.", arguments.place(1))
    given = of.scale
    return _summed(arguments, "sumDec", DecimalType(scale), items, lambda total: rescaled(total, given, scale))


def sum_qty(arguments: Arguments) -> CheckedTerm:
    unit = arguments.unit(0)
    items, of = arguments.list_of_any(1)
    if of != QuantityType(unit):
        raise arguments.mistake(f"Argument 2 must be List(Qty({unit})), but this is List({of}).", arguments.place(1))
    return _summed(arguments, "sumQty", of, items, int)


def _summed(
    arguments: Arguments, label: str, of: RuleType, items: CheckedTerm, finish: Callable[[int], int]
) -> CheckedTerm:
    """The sum is rounded once, at its end."""
    encode, at = encoder(of), arguments.at

    def run(machine: Machine) -> Pair:
        machine.step(at)
        values, node = items.run(machine)
        machine.steps(len(values), at)
        total = finish(sum(values))
        if not in_bounds(of, total):
            raise machine.failure(NUMBER_TOO_LARGE, too_large(of), at)
        return total, machine.operation(label, (node,), encode, total, at)

    return CheckedTerm(of, run)
