"""Exact arithmetic on scaled integers: 12.50 with two decimal places is 1250.

Where digits are dropped, the result is rounded once, half to even. Nothing here is a float or depends on a decimal context.
"""

from __future__ import annotations

import re
from decimal import Decimal

_WRITTEN = re.compile(r"-?[0-9]{1,60}(?:\.[0-9]{1,60})?", re.ASCII)
_MOST = 60
"""Digits of a number in a fact, before and after the point."""


def divided(numerator: int, denominator: int) -> int:
    """The quotient as an integer, rounded half to even."""
    if denominator < 0:
        numerator, denominator = -numerator, -denominator
    quotient, remainder = divmod(numerator, denominator)
    twice = 2 * remainder
    return quotient + (twice > denominator or (twice == denominator and quotient % 2 == 1))


def rescaled(number: int, scale: int, wanted: int) -> int:
    """The same number with another number of decimal places."""
    if wanted >= scale:
        return number * int(10 ** (wanted - scale))
    return divided(number, int(10 ** (scale - wanted)))


def written(number: int, scale: int) -> str:
    """All digits, as many decimal places as the scale says, and no minus before a zero."""
    digits = str(abs(number)).rjust(scale + 1, "0")
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}" if scale else f"{sign}{digits}"


def fraction(value: object) -> tuple[int, int] | None:
    """Numerator and denominator of a number in a fact: an integer, a Decimal, or a text of digits. None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return (value, 1) if value.bit_length() <= 200 else None
    if isinstance(value, str):
        if not _WRITTEN.fullmatch(value):
            return None
        value = Decimal(value)
    if not isinstance(value, Decimal):
        return None
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or len(digits) > 2 * _MOST or abs(exponent) > _MOST:
        return None
    coefficient = int("".join(map(str, digits))) * (-1 if sign else 1)
    return (coefficient * int(10**exponent), 1) if exponent >= 0 else (coefficient, int(10**-exponent))
