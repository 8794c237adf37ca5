"""All that a printed text can mean, in any language: `1.234` is 1234 to some and 1.234 to others.

An embedded value that is among them is taken for printed. This leans towards agreement, so that nobody is accused
because of a sign.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from decimal import Decimal
from functools import lru_cache

from waybill_documents.dates import date_format
from waybill_documents.locales import MONTHS, LocaleRules, locale_rules
from waybill_documents.mapping.model import Locale
from waybill_documents.value_text import Unreadable, read

_NUMBERS: tuple[LocaleRules, ...] = (
    locale_rules(Locale(base="de", group=(".", " ", "'"))),
    locale_rules(Locale(base="en", group=(",", " ", "'"))),
)
_DATES: tuple[LocaleRules, ...] = tuple(locale_rules(Locale.model_validate({"base": base})) for base in MONTHS)
_MONTH_FIRST = date_format("M/d/yyyy")
_LONGEST = 40
_DAY = r"[0-9]{1,2}(?: ?[^\W\d_]{1,3})?"
_LIKE_A_DATE = re.compile(
    rf"{_DAY}[./, -]{{0,3}}(?:[0-9]{{1,2}}|[^\W\d_]{{3,}}\.?)[./, -]{{0,3}}(?:[0-9]{{2}}|[0-9]{{4}})"
    rf"|[^\W\d_]{{3,}}\.? {_DAY},? [0-9]{{4}}|[0-9]{{4}}[./-][0-9]{{1,2}}[./-][0-9]{{1,2}}"
)
_ALPHANUMERIC = re.compile(r"[\W_]+")


@lru_cache(maxsize=20_000)
def amounts(text: str) -> frozenset[Decimal]:
    """The numbers that a text may be, without their signs; none if it is no number."""
    if len(text) > _LONGEST or not any(letter.isdigit() for letter in text):
        return frozenset()
    # Most numbers have nothing around them. A refusal takes long, because it explains itself.
    plain = [locale for locale in _NUMBERS if locale.plain_number.fullmatch(text)]
    found = set()
    for locale in plain or _NUMBERS:
        try:
            number = read(text, "decimal", locale)
        except Unreadable:
            continue
        if isinstance(number, Decimal):
            found.add(abs(number))
    return frozenset(found)


@lru_cache(maxsize=20_000)
def dates(text: str) -> frozenset[date]:
    """The days that a text may be; none if it is no date."""
    text = text.strip(".,;:()")
    if not 6 <= len(text) <= _LONGEST or not _LIKE_A_DATE.fullmatch(text):
        return frozenset()
    plain = unicodedata.normalize("NFC", text)
    found = {form.read(plain, locale.months) for locale in _DATES for form in locale.dates}
    found.add(_MONTH_FIRST.read(plain, {}))
    return frozenset(day for day in found if day is not None)


@lru_cache(maxsize=20_000)
def letters_and_digits(text: str) -> str:
    """A number or a name for comparison: `RE-2018/15` and `re 2018 15` are the same."""
    return _ALPHANUMERIC.sub("", unicodedata.normalize("NFKC", text)).casefold()


_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")


def iban(text: str) -> str | None:
    """The text as an IBAN, or None if its check digits do not fit one."""
    plain = "".join(text.split()).upper()
    if not _IBAN.fullmatch(plain):
        return None
    number = "".join(str(int(letter, 36)) for letter in plain[4:] + plain[:4])
    return plain if int(number) % 97 == 1 else None
