"""What `+ - * /` and comparisons do with two types: the type of the result, and the arithmetic on scaled integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

from waybill_passport.rules.limits import QUANTITY_SCALE
from waybill_passport.rules.numbers import divided
from waybill_passport.rules.types import (
    BOOL,
    INT,
    TEXT,
    DecimalType,
    QuantityType,
    RuleType,
    closed,
    ordered,
)
from waybill_passport.rules.units import convertible, product, quotient
from waybill_passport.rules.values import Value

_ONE = int(10**QUANTITY_SCALE)


class Arithmetic(NamedTuple):
    """What an operator gives for two types. `calculate` raises ZeroDivisionError for a division by zero."""

    type: RuleType
    calculate: Callable[[Value, Value], Value]


def arithmetic(sign: str, left: RuleType, right: RuleType) -> Arithmetic | str:
    """The arithmetic, or a sentence that says why there is none."""
    found = None
    if sign in ("+", "-"):
        found = _sum(sign, left, right)
    elif sign == "*":
        found = _product(left, right)
    elif sign == "/":
        found = _quotient(left, right)
    return found or _refusal(sign, left, right)


def _sum(sign: str, left: RuleType, right: RuleType) -> Arithmetic | None:
    number = left == INT or isinstance(left, DecimalType | QuantityType)
    if left == right and (number or (left == TEXT and sign == "+")):
        return Arithmetic(left, operator.add if sign == "+" else operator.sub)
    return None


def _product(left: RuleType, right: RuleType) -> Arithmetic | None:
    match left, right:
        case DecimalType(a), DecimalType(b):
            return Arithmetic(DecimalType(max(a, b)), _over(int(10 ** min(a, b))))
        case ((DecimalType() | QuantityType()), _) if right == INT:
            return Arithmetic(left, operator.mul)
        case _, (DecimalType() | QuantityType()) if left == INT:
            return Arithmetic(right, operator.mul)
        case QuantityType(), DecimalType(scale):
            return Arithmetic(left, _over(int(10**scale)))
        case DecimalType(scale), QuantityType():
            return Arithmetic(right, _over(int(10**scale)))
        case QuantityType(a_unit), QuantityType(b_unit):
            found = product(a_unit, b_unit)
            return Arithmetic(QuantityType(found[0]), _over(_ONE * found[1])) if found else None
    return Arithmetic(INT, operator.mul) if left == right == INT else None


def _quotient(left: RuleType, right: RuleType) -> Arithmetic | None:
    match left, right:
        case DecimalType(a), DecimalType(b):
            most = max(a, b)
            return Arithmetic(DecimalType(most), _times(int(10 ** (most + b - a))))
        case ((DecimalType() | QuantityType()), _) if right == INT:
            return Arithmetic(left, divided)
        case QuantityType(), DecimalType(scale):
            return Arithmetic(left, _times(int(10**scale)))
        case QuantityType(a_unit), QuantityType(b_unit):
            if a_unit == b_unit:
                return Arithmetic(DecimalType(QUANTITY_SCALE), _times(_ONE))
            unit = quotient(a_unit, b_unit)
            return Arithmetic(QuantityType(unit), _times(_ONE)) if unit else None
    return None


def _over(denominator: int) -> Callable[[int, int], int]:
    return lambda a, b: divided(a * b, denominator)


def _times(factor: int) -> Callable[[int, int], int]:
    return lambda a, b: divided(a * factor, b)


def _refusal(sign: str, left: RuleType, right: RuleType) -> str:
    refused = f"There is no {left} {sign} {right}."
    match left, right:
        case DecimalType(a), DecimalType(b):
            return f"{refused} Give both the same number of decimal places: toDec({max(a, b)}, …)."
        case QuantityType(a_unit), QuantityType(b_unit) if b_unit in convertible(a_unit):
            return f'{refused} Convert one of them: convert("{b_unit}", "{a_unit}", …).'
        case QuantityType("kgCO2e"), QuantityType():
            return f'{refused} Convert the first one: convert("kgCO2e", "gCO2e", …).'
        case _, _ if left == right == INT and sign == "/":
            return f"{refused} Say how many decimal places the quotient has: toDec(2, …) / toDec(2, …)."
        case _, DecimalType(scale) if left == INT:
            return f"{refused} Make a Dec of the Int: toDec({scale}, …)."
        case DecimalType(scale), _ if right == INT:
            return f"{refused} Make a Dec of the Int: toDec({scale}, …)."
        case QuantityType(unit), _ if right == INT or isinstance(right, DecimalType):
            return f'{refused} Give the number a unit: toQty("{unit}", …).'
        case _, QuantityType(unit) if left == INT or isinstance(left, DecimalType):
            return f'{refused} Give the number a unit: toQty("{unit}", …).'
    return refused


_COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison(sign: str, left: RuleType, right: RuleType) -> Arithmetic | str:
    """How two values are compared, or why they cannot be. Decs compare exactly, whatever their scales."""
    compare = _COMPARISONS[sign]
    if isinstance(left, DecimalType) and isinstance(right, DecimalType):
        a, b = int(10**right.scale), int(10**left.scale)
        return Arithmetic(BOOL, lambda x, y: compare(x * a, y * b))
    if left == right and (ordered(left) or (sign in ("==", "!=") and closed(left))):
        return Arithmetic(BOOL, compare)
    return f"{left} cannot be compared with {right} by {sign}." if left == right else _refusal(sign, left, right)
