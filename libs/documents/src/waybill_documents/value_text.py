"""Reads printed texts as typed values, and spells values for findings. Strict: an unclear number is refused."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from decimal import Decimal
from typing import Literal

from waybill_documents.expressions.numbers import MOST_DIGITS, plain_text
from waybill_documents.expressions.scope import Reader
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.model import Locale, ValueType
from waybill_documents.messages import DocumentMessage
from waybill_documents.values import Scalar

LONGEST = 200
"""Characters of a printed number. Longer texts are refused unread."""

_NOT_DIGITS = re.compile("[^0-9]+")

# All kinds of spaces, minus signs and apostrophes are treated alike.
_ALIKE = str.maketrans(
    dict.fromkeys(
        "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\t\r\n", " "
    )
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u02bc\u2032", "'")
)


class Unreadable(ValueError):
    """The text is not of the type it should have. The message is for a clerk."""

    def __init__(self, says: DocumentMessage) -> None:
        super().__init__(says.english)
        self.says = says


def read(text: str, type: ValueType, locale: LocaleRules) -> Scalar:  # noqa: A002 - the mapping's word
    """The value of a printed text; None when nothing is printed. Raises `Unreadable` when it is not of that type.

    - `text`: without the spaces around it.
    - `digits`: only 0 to 9, as a text, so that leading zeros stay.
    - `decimal`: `1.234,50`, `-5`, `5-`, `(5)`, `Rp 5`, `5,-`, `5 €`, `12 %`; group signs only where they belong.
    - `integer`: the same without a fraction.
    - `date`: the first of the locale's formats that fits.
    """
    if type == "decimal":
        # A quick path for what most cells contain; anything unusual goes through `_number`.
        if locale.plain_number.fullmatch(text) and len(text) <= MOST_DIGITS:
            return Decimal(_ungrouped(text, locale))
        return _number(text, locale)
    stripped = text.strip()
    if not stripped:
        return None
    if type == "text":
        return stripped
    if type == "digits":
        digits = _NOT_DIGITS.sub("", stripped)
        if not digits:
            raise Unreadable(DocumentMessage("text.no_digits", text=_short(text)))
        return digits
    if type == "integer":
        if locale.plain_number.fullmatch(text) and len(text) <= MOST_DIGITS and locale.decimal not in text:
            return int(_ungrouped(text, locale))
        number = _number(text, locale)
        if number is not None and number.as_tuple().exponent != 0:
            raise Unreadable(DocumentMessage("text.not_a_whole_number", text=_short(text)))
        return None if number is None else int(number)
    return _date(stripped, locale)


def reader(locale: Locale | None) -> Reader:
    """Reads printed texts for expressions, which work with a message instead of an exception."""
    rules: LocaleRules | None = None  # made when an expression first reads something; few do

    def read_or_say(text: str, type: Literal["decimal", "date"]) -> Decimal | date | DocumentMessage | None:  # noqa: A002
        nonlocal rules
        rules = rules or locale_rules(locale)
        try:
            return read(text, type, rules)  # type: ignore[return-value]  # a value of the type that was asked for
        except Unreadable as error:
            return error.says

    return read_or_say


def show(value: Scalar, locale: LocaleRules) -> str:
    """The value as the document would print it: `37.050,00`, `7 Agustus 2025`. None is an empty text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return locale.answers[0 if value else 1]
    if isinstance(value, Decimal | int):
        return _shown_number(value, locale)
    if isinstance(value, date):
        return locale.dates[0].write(value, locale.month_names)
    return ""


def _ungrouped(number: str, locale: LocaleRules) -> str:
    for sign in locale.groups:
        number = number.replace(sign, "")
    return number.replace(",", ".") if locale.decimal == "," else number


def _number(text: str, locale: LocaleRules) -> Decimal | None:
    if len(text) > LONGEST:
        raise _not_a_number(text, locale)
    alike = " ".join(text.translate(_ALIKE).split())
    if not alike:
        return None
    match = locale.dressed_number.fullmatch(alike)
    if match is None:
        raise _not_a_number(text, locale)
    head, number, tail = match.groups()
    sign = locale.dress.sign(head, tail, fraction=locale.decimal in number)
    if sign is None and head.endswith(locale.decimal) and number.isdigit():
        # `$.50`, where the head took the decimal sign; `Rs.50` has been tried before and is 50.
        sign = locale.dress.sign(head[:-1], tail, fraction=True)
        number = f"0{locale.decimal}{number}"
    if sign is None:
        raise _not_a_number(text, locale)
    plain = _ungrouped(number, locale)
    if len(plain) - ("." in plain) > MOST_DIGITS:
        raise Unreadable(DocumentMessage("text.too_many_digits", text=_short(text), most=MOST_DIGITS))
    return Decimal(plain) if sign > 0 else Decimal(plain).copy_negate()


def _not_a_number(text: str, locale: LocaleRules) -> Unreadable:
    return Unreadable(DocumentMessage("text.not_a_number", text=_short(text), example=_number_example(locale)))


def _number_example(locale: LocaleRules) -> str:
    group = locale.groups[0] if locale.groups else ""
    return f"1{group}234{locale.decimal}56"


def _date_example(locale: LocaleRules) -> str:
    return locale.dates[0].write(date(2025, 8, 7), locale.month_names)


def _date(text: str, locale: LocaleRules) -> date:
    # Composed, because some PDFs print an é as an e followed by an accent.
    plain = unicodedata.normalize("NFC", " ".join(text.split())) if len(text) <= LONGEST else text
    for form in locale.dates:
        found = form.read(plain, locale.months)
        if found is not None:
            return found
    raise Unreadable(DocumentMessage("text.not_a_date", text=_short(text), example=_date_example(locale)))


def _shown_number(value: Decimal | int, locale: LocaleRules) -> str:
    plain = plain_text(value)
    if plain is None:
        return str(value) if isinstance(value, Decimal) else "a number with too many digits"
    sign, plain = ("-", plain[1:]) if plain.startswith("-") else ("", plain)
    whole, point, fraction = plain.partition(".")
    if locale.groups:
        # A group separator must not break across lines in a sentence.
        group = "\u00a0" if locale.groups[0] == " " else locale.groups[0]
        whole = f"{int(whole):,}".replace(",", group)
    return f"{sign}{whole}{locale.decimal if point else ''}{fraction}"


def _short(text: str) -> str:
    plain = " ".join(text[:LONGEST].split())
    return plain if len(plain) <= 60 else plain[:59] + "…"
