"""Exact arithmetic on scaled integers: 12.50 with two decimal places is 1250.

Where digits are dropped, the result is rounded once, half to even. There are no floats, and no decimal context matters.
"""

from __future__ import annotations

import re
from decimal import Decimal

_WRITTEN = re.compile(r"-?[0-9]{1,61}(?:\.[0-9]{1,120})?", re.ASCII)
_MOST = 60
"""The largest and smallest power of ten of a number in a fact."""


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
    if scale == 0:
        return str(number)
    digits = str(number) if number >= 0 else str(-number)
    if len(digits) <= scale:
        digits = digits.rjust(scale + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def fraction(value: object) -> tuple[int, int] | None:
    """Numerator and denominator of a number in a fact: an integer, a Decimal or a text of digits. Or None."""
    if isinstance(value, int):
        return None if isinstance(value, bool) or value.bit_length() > 200 else (value, 1)
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value.adjusted()) > _MOST:
            return None
        text = str(value)
        if "E" in text:
            text = f"{value:f}"
    elif isinstance(value, str):
        text = value
    else:
        return None
    if not _WRITTEN.fullmatch(text):
        return None
    whole, _, places = text.partition(".")
    return int(whole + places), int(10 ** len(places))
