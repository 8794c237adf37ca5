"""Numbers, dates and tax numbers the way Indonesian invoices print them, and amounts in words."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

MONTHS = (
    "Januari", "Februari", "Maret", "April", "Mei", "Juni",
    "Juli", "Agustus", "September", "Oktober", "November", "Desember",
)  # fmt: skip

_SMALL = (
    "nol", "satu", "dua", "tiga", "empat", "lima", "enam", "tujuh", "delapan", "sembilan", "sepuluh", "sebelas",
)  # fmt: skip
_SCALES = ((10**12, "triliun"), (10**9, "miliar"), (10**6, "juta"), (10**3, "ribu"))


def number(value: Decimal, *, places: int = 0) -> str:
    """`1.234.567,89`: at least so many decimal places, and never fewer than the value has."""
    places = max(places, _places(value))
    return f"{value:,.{places}f}".translate(str.maketrans(",.", ".,"))


def long_date(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def short_date(day: date) -> str:
    return f"{day:%d/%m/%Y}"


def dotted_npwp(digits: str) -> str:
    """Fifteen digits as `07.154.206.5-901.000`, sixteen with one more in the last group."""
    return f"{digits[:2]}.{digits[2:5]}.{digits[5:8]}.{digits[8]}-{digits[9:12]}.{digits[12:]}"


def terbilang(amount: Decimal) -> str:
    """The amount in words: `dua ratus lima ribu rupiah sepuluh sen`."""
    rupiah = int(amount)
    sen = int((amount - rupiah) * 100)
    words = f"{_words(rupiah)} rupiah"
    return f"{words} {_words(sen)} sen" if sen else words


def _words(value: int) -> str:
    for scale, name in _SCALES:
        if value >= scale:
            count, rest = divmod(value, scale)
            head = "seribu" if (scale, count) == (1000, 1) else f"{_words(count)} {name}"
            return _join(head, rest)
    if value >= 100:
        count, rest = divmod(value, 100)
        return _join("seratus" if count == 1 else f"{_SMALL[count]} ratus", rest)
    if value >= 20:
        count, rest = divmod(value, 10)
        return _join(f"{_SMALL[count]} puluh", rest)
    return _SMALL[value] if value < 12 else f"{_SMALL[value - 10]} belas"


def _join(head: str, rest: int) -> str:
    return f"{head} {_words(rest)}" if rest else head


def _places(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
