"""How numbers and dates are printed in a language, and how a mapping changes that.

`LocaleRules` is made once for a document; `value_text.py` uses it for every value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from waybill_documents.dates import DateFormat, date_format, folded
from waybill_documents.faults import MappingFault
from waybill_documents.messages import DocumentMessage, Mistake

if TYPE_CHECKING:
    from waybill_documents.mapping.model import Locale

_MONTHS_AS_WRITTEN = {
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "en": "January February March April May June July August September October November December",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "id": "Januari Februari Maret April Mei Juni Juli Agustus September Oktober November Desember",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    # In the genitive, which a date needs; the nominative is among the other names.
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
}
MONTHS = {language: tuple(names.split()) for language, names in _MONTHS_AS_WRITTEN.items()}
"""The full names, January first."""

_POLISH_NOMINATIVE = "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień"

# Further names and abbreviations besides the first three letters.
_OTHER_NAMES: dict[str, dict[str, int]] = {
    "de": {"jänner": 1, "feber": 2, "maerz": 3, "mrz": 3, "sept": 9},
    "en": {"sept": 9},
    "es": {"sept": 9, "setiembre": 9, "set": 9},
    "fr": {"janv": 1, "févr": 2, "avr": 4, "juil": 7, "sept": 9},
    "id": {"pebruari": 2, "ags": 8, "agt": 8, "agst": 8, "sept": 9, "nopember": 11, "nop": 11},
    "it": {"genn": 1, "febbr": 2, "sett": 9},
    "nl": {"mrt": 3, "sept": 9},
    "pl": {name: month for month, name in enumerate(_POLISH_NOMINATIVE.split(), start=1)},
    "pt": {},
}

_NUMBER_SIGNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "de": (",", (".",)),
    "en": (".", (",",)),
    "es": (",", (".",)),
    "fr": (",", (" ",)),
    "id": (",", (".",)),
    "it": (",", (".",)),
    "nl": (",", (".",)),
    "pl": (",", (" ",)),
    # As in Brazil. A mapping for Portugal, where a space groups, says so.
    "pt": (",", (".",)),
}
"""The decimal sign and the group signs."""

_SLASHES = ("dd/MM/yyyy", "dd-MM-yyyy", "dd.MM.yyyy", "dd/MM/yy")

_DATES: dict[str, tuple[str, ...]] = {
    "de": ("d. MMMM yyyy", "d MMMM yyyy", "dd.MM.yyyy", "dd.MM.yy", "yyyy-MM-dd"),
    # No 03/04/2025: it is in March in one country and in April in another, so a mapping has to choose.
    "en": ("MMMM d, yyyy", "d MMMM yyyy", "MMMM d yyyy", "d-MMM-yyyy", "d-MMM-yy", "yyyy-MM-dd"),
    "es": ("d 'de' MMMM 'de' yyyy", "d MMMM yyyy", *_SLASHES, "d-MMM-yyyy", "d-MMM-yy", "yyyy-MM-dd"),
    "fr": ("d MMMM yyyy", "dd/MM/yyyy", "dd.MM.yyyy", "dd/MM/yy", "yyyy-MM-dd"),
    "id": ("d MMMM yyyy", "dd/MM/yyyy", "dd-MM-yyyy", "d-MMM-yyyy", "d-MMM-yy", "dd/MM/yy", "yyyy-MM-dd"),
    "it": ("d MMMM yyyy", *_SLASHES, "d-MMM-yyyy", "d-MMM-yy", "yyyy-MM-dd"),
    "nl": ("d MMMM yyyy", "dd-MM-yyyy", "dd/MM/yyyy", "dd-MM-yy", "yyyy-MM-dd"),
    # `r.` is short for year.
    "pl": (
        *("d MMMM yyyy", "d MMMM yyyy 'r.'", "dd.MM.yyyy", "dd.MM.yyyy 'r.'", "dd-MM-yyyy", "dd/MM/yyyy"),
        *("dd.MM.yy", "yyyy-MM-dd"),
    ),
    "pt": ("d 'de' MMMM 'de' yyyy", "d MMMM yyyy", *_SLASHES, "d-MMM-yyyy", "d-MMM-yy", "yyyy-MM-dd"),
}
"""Tried in order. The first one is also used to show a date."""

_CURRENCIES = (
    "Rp.", "Rp", "IDR", "€", "EUR", "Euro", "US$", "$", "USD", "£", "GBP", "CHF", "Fr.", "¥", "JPY", "S$", "SGD",
    "₹", "Rs.", "Rs", "INR", "A$", "AUD", "RM", "MYR", "CNY", "DKK", "SEK", "NOK", "PLN", "kr",
    "R$", "BRL", "zł",
)  # fmt: skip
"""The same in all languages, because an invoice in German may be in dollars."""

_ANSWERS = {
    "de": ("ja", "nein"),
    "en": ("yes", "no"),
    "es": ("sí", "no"),
    "fr": ("oui", "non"),
    "id": ("ya", "tidak"),
    "it": ("sì", "no"),
    "nl": ("ja", "nee"),
    "pl": ("tak", "nie"),
    "pt": ("sim", "não"),
}


class Dress:
    """What may surround a number: a minus, brackets, a currency, a percent sign, and the dash of `5,-`.

    Each occurs at most once on a side, in any usual order: `-Rp 5`, `Rp -5`, `(Rp 5)`, `Rp (5)`, `5,- €`.
    """

    _MOST_REMEMBERED = 500

    def __init__(self, decimal: str, currencies: tuple[str, ...]) -> None:
        signs = "|".join(re.escape(sign) for sign in sorted(currencies, key=len, reverse=True) if sign) or "(?!)"
        # `Rp. 5`: a full stop may follow any sign. Where it is the decimal sign, only before a space: `$.50` is 0.50.
        stop = r"(?:\.(?= ))?" if decimal == "." else r"\.?"
        currency = f"(?:(?:{signs}){stop} ?)?"
        self._head = re.compile(
            rf"(?P<before>[-+] ?)?{currency}(?P<between>[-+] ?)?%? ?(?P<open>\( ?)?{currency}", re.IGNORECASE
        )
        self._tail = re.compile(
            rf"(?P<dash>{re.escape(decimal)}-{{1,3}})? ?%? ?(?P<after>- ?)?{currency}"
            rf"(?P<close>\) ?)?(?P<end>- ?)?%? ?{currency}",
            re.IGNORECASE,
        )
        self._known: dict[tuple[str, str, bool], Literal[1, -1] | None] = {}

    def sign(self, head: str, tail: str, *, fraction: bool) -> Literal[1, -1] | None:
        """Whether head and tail make the number positive or negative; None when they are not allowed around a number.

        The results are cached, because a document prints all its numbers alike.
        """
        key = (head, tail, fraction)
        if key in self._known:
            return self._known[key]
        sign = self._sign(head, tail, fraction=fraction)
        if len(self._known) < self._MOST_REMEMBERED:
            self._known[key] = sign
        return sign

    def _sign(self, head: str, tail: str, *, fraction: bool) -> Literal[1, -1] | None:
        left, right = self._head.fullmatch(head), self._tail.fullmatch(tail)
        if left is None or right is None or (fraction and right["dash"]):
            return None
        signs = [sign for sign in (left["before"], left["between"], right["after"], right["end"]) if sign]
        bracketed = left["open"] is not None
        if bracketed is not (right["close"] is not None) or len(signs) + bracketed > 1:
            return None
        return -1 if bracketed or (signs and signs[0][0] == "-") else 1


@dataclass(frozen=True, slots=True)
class LocaleRules:
    """How this document prints numbers and dates. Made by `locale_rules`."""

    language: str
    decimal: str
    groups: tuple[str, ...]
    """Signs between thousands. The first one is used to show a number. A space means any kind of space."""
    dates: tuple[DateFormat, ...]
    months: Mapping[str, int]
    """Names of months as `dates.folded` gives them."""
    month_names: tuple[str, ...]
    currencies: tuple[str, ...]
    answers: tuple[str, str]
    """Yes and no."""
    plain_number: re.Pattern[str] = field(repr=False, compare=False)
    """Matches a number with nothing around it; the fast path for most of a document."""
    dressed_number: re.Pattern[str] = field(repr=False, compare=False)
    """Matches a number with something around it."""
    dress: Dress = field(repr=False, compare=False)
    """What may surround a number."""


def locale_rules(locale: Locale | None) -> LocaleRules:
    """The rules of the mapping's locale; English if it has none. Raises `MappingFault` for a contradictory locale."""
    base = locale.base if locale else "en"
    decimal, groups = _number_signs(locale, base)
    currencies = _CURRENCIES if locale is None or locale.currencies is None else locale.currencies
    number = _number_pattern(decimal, groups)
    return LocaleRules(
        language=base,
        decimal=decimal,
        groups=groups,
        dates=_dates(_DATES[base] if locale is None or locale.dates is None else locale.dates),
        months=_months(base, locale.months if locale and locale.months else {}),
        month_names=MONTHS[base],
        currencies=currencies,
        answers=_ANSWERS[base],
        plain_number=re.compile(number),
        dressed_number=re.compile(rf"([^0-9]*)({number})([^0-9]*)"),
        dress=Dress(decimal, currencies),
    )


def _number_signs(locale: Locale | None, base: str) -> tuple[str, tuple[str, ...]]:
    decimal, groups = _NUMBER_SIGNS[base]
    if locale is None:
        return decimal, groups
    if locale.decimal and locale.group and locale.decimal in locale.group:
        raise MappingFault(DocumentMessage("mapping.locale.same_sign", sign=locale.decimal), "locale")
    if locale.decimal:
        decimal = locale.decimal
        # The language's own group sign changes with it: English with a decimal comma groups by points.
        groups = tuple(({",": ".", ".": ","}[sign] if sign == decimal else sign) for sign in groups)
    if locale.group is not None:
        groups = locale.group
        if not locale.decimal and decimal in groups:
            decimal = {",": ".", ".": ","}[decimal]
            if decimal in groups:
                raise MappingFault(DocumentMessage("mapping.locale.no_decimal_sign"), "locale")
    return decimal, groups


def _dates(formats: tuple[str, ...]) -> tuple[DateFormat, ...]:
    made: list[DateFormat] = []
    for text in formats:
        try:
            made.append(date_format(text))
        except Mistake as mistake:
            raise MappingFault(
                DocumentMessage("mapping.locale.bad_date", format=text, why=mistake.says), "locale.dates"
            ) from None
        if not made[-1].complete:
            raise MappingFault(DocumentMessage("mapping.locale.incomplete_date", format=text), "locale.dates")
    if not made:
        raise MappingFault(DocumentMessage("mapping.locale.no_dates"), "locale.dates")
    return tuple(made)


def _months(base: str, further: Mapping[str, int]) -> dict[str, int]:
    """The language's own names, and the English ones, which documents in other languages often use."""
    known: dict[str, int] = {}
    for language in ("en", base):
        for month, name in enumerate(MONTHS[language], start=1):
            known[folded(name)] = month
            # Three letters, except where they are ambiguous: French juin and juillet.
            if not (language == "fr" and month in (6, 7)):
                known[folded(name)[:3]] = month
        known |= {folded(name): month for name, month in _OTHER_NAMES[language].items()}
    return known | {folded(name): month for name, month in further.items()}


def _number_pattern(decimal: str, groups: tuple[str, ...]) -> str:
    """Digits, grouped by threes with one sign throughout or not at all, and a fraction.

    A number that begins with a grouped 0 (`0.123` where the point groups) is a fraction in another locale, not 123.
    """
    whole = "|".join([rf"[1-9][0-9]{{0,2}}(?:{re.escape(sign)}[0-9]{{3}})+" for sign in groups] + ["[0-9]+"])
    sign = re.escape(decimal)
    return rf"(?:{whole})(?:{sign}[0-9]+)?"
