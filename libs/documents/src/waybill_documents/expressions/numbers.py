"""Decimal arithmetic that cannot fail and cannot grow: a result that is not a number or is too long is empty.

Every result keeps 40 significant digits, so an amount of 10^15 times a rate with 20 decimals is still exact, and a
division such as 1/3 is cut after 40. There is no exponent to speak of: beyond 40 digits before the point a result is
empty, and beyond 80 after it, it is 0. No sequence of operations can therefore take long or fill the memory.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

MOST_DIGITS = 40
"""Digits of a number, here and in documents."""

# No traps: an overflow, a division by zero and an invalid operation give an infinity or NaN, which every
# function below turns into None. Half even is for the 41st digit only; `round` rounds half up.
_CONTEXT = Context(
    prec=MOST_DIGITS, rounding=ROUND_HALF_EVEN, Emin=-MOST_DIGITS, Emax=MOST_DIGITS - 1, capitals=1, clamp=0, traps=[]
)
_add, _subtract = _CONTEXT.add, _CONTEXT.subtract
_multiply, _divide = _CONTEXT.multiply, _CONTEXT.divide

MOST_PLACES = 30
_LAST_PLACE = {places: Decimal(1).scaleb(-places) for places in range(-MOST_PLACES, MOST_PLACES + 1)}
_ZERO = Decimal(0)
_LARGEST = Decimal(10) ** MOST_DIGITS


def number(value: Any) -> Decimal | None:
    """The value if it is a number of an acceptable size, otherwise None. True and False are not numbers."""
    if isinstance(value, Decimal):
        return value if value.is_finite() and value.adjusted() < MOST_DIGITS else None
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value) if -_LARGEST < value < _LARGEST else None
    return None


def add(left: Any, right: Any) -> Decimal | None:
    """Left plus right."""
    if type(left) is Decimal and type(right) is Decimal:
        result = _add(left, right)
    elif (a := number(left)) is not None and (b := number(right)) is not None:
        result = _add(a, b)
    else:
        return None
    return result if result.is_finite() else None


def subtract(left: Any, right: Any) -> Decimal | None:
    """Left minus right."""
    if type(left) is Decimal and type(right) is Decimal:
        result = _subtract(left, right)
    elif (a := number(left)) is not None and (b := number(right)) is not None:
        result = _subtract(a, b)
    else:
        return None
    return result if result.is_finite() else None


def multiply(left: Any, right: Any) -> Decimal | None:
    """Left times right."""
    if type(left) is Decimal and type(right) is Decimal:
        result = _multiply(left, right)
    elif (a := number(left)) is not None and (b := number(right)) is not None:
        result = _multiply(a, b)
    else:
        return None
    return result if result.is_finite() else None


def divide(left: Any, right: Any) -> Decimal | None:
    """Left divided by right; empty when right is 0."""
    if type(left) is Decimal and type(right) is Decimal:
        result = _divide(left, right)
    elif (a := number(left)) is not None and (b := number(right)) is not None:
        result = _divide(a, b)
    else:
        return None
    return result if result.is_finite() else None


def negative(value: Any) -> Decimal | None:
    """The number with the opposite sign. 0 has no sign."""
    return subtract(_ZERO, value)


def total(values: list[Any]) -> Decimal | None:
    """The sum of the values that are not empty. It is empty if a value is not a number, which must not be left out."""
    result = _ZERO
    for value in values:
        if value is None:
            continue
        plain = value if type(value) is Decimal else number(value)
        if plain is None:
            return None
        result = _add(result, plain)
    return result if result.is_finite() else None


def rounded(value: Any, places: Any = 0) -> Decimal | None:
    """Half up, away from 0: 0.125 is 0.13 and -0.125 is -0.13."""
    plain = value if type(value) is Decimal else number(value)
    if plain is None:
        return None
    try:
        last = _LAST_PLACE[places]  # a Decimal finds its int: equal numbers have equal hashes
    except (KeyError, TypeError, ValueError):
        return None
    result = plain.quantize(last, ROUND_HALF_UP, _CONTEXT)
    if not result.is_finite():
        return None
    return result if places >= 0 else result.quantize(_LAST_PLACE[0], ROUND_HALF_UP, _CONTEXT)


def places(value: Decimal) -> int:
    """The number of digits after the decimal sign, zeros included: 2 for 37500.00."""
    text = str(value)  # much faster than `as_tuple`
    if "E" in text:
        return max(0, -int(value.as_tuple().exponent))
    point = text.find(".")
    return len(text) - point - 1 if point >= 0 else 0


def precision(value: Any) -> Decimal | None:
    """The value of its last digit: 1 for 37500 and 0.01 for 37500.00."""
    plain = number(value)
    if plain is None:
        return None
    digits = places(plain)
    return _LAST_PLACE[digits] if digits <= MOST_PLACES else Decimal(1).scaleb(-digits)


def whole(value: Any) -> int | None:
    """The number as a length or a count, if it is whole and small enough."""
    plain = number(value)
    if plain is None or not -1_000_000 <= plain <= 1_000_000 or plain != plain.to_integral_value():
        return None
    return int(plain)


def plain_text(value: Decimal | int) -> str | None:
    """The number without an exponent and without grouping, as in `37500.00`."""
    if isinstance(value, int):
        return str(value) if -_LARGEST < value < _LARGEST else None
    if not value.is_finite():
        return None
    text = str(value)
    if "E" in text:
        if not -2 * MOST_DIGITS <= value.adjusted() < MOST_DIGITS:
            return None
        text = f"{value:f}"
    return text if len(text) <= 4 * MOST_DIGITS else None


def absolute(value: Any) -> Decimal | None:
    """The number without its sign."""
    plain = number(value)
    return None if plain is None else plain.copy_abs()
