"""Printed texts are read as typed values, or refused with a message."""

from __future__ import annotations

import time
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.model import Locale, ValueType
from waybill_documents.value_text import Unreadable, read, show

RULES: dict[str, LocaleRules] = {
    "de": locale_rules(Locale(base="de")),
    "en": locale_rules(Locale(base="en")),
    "fr": locale_rules(Locale(base="fr")),
    "id": locale_rules(Locale(base="id")),
    "nl": locale_rules(Locale(base="nl")),
}

languages = st.sampled_from(sorted(RULES))
amounts = st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=4
) | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**35), max_value=10**35, places=0)


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("id", "1.234.567", "1234567"),
        ("id", "1.234.567,89", "1234567.89"),
        ("id", "1234567,89", "1234567.89"),
        ("id", " 37.050,00 ", "37050.00"),
        ("id", "Rp 1.234", "1234"),
        ("id", "Rp1.234,50", "1234.50"),
        ("id", "RP. 12.500,-", "12500"),
        ("id", "12.500 IDR", "12500"),
        ("id", "(12,50)", "-12.50"),
        ("id", "-12,50", "-12.50"),
        ("id", "12,50-", "-12.50"),
        ("id", "\u2212 5", "-5"),
        ("id", "-Rp 5", "-5"),
        ("id", "Rp -5", "-5"),
        ("id", "(Rp 5)", "-5"),
        ("id", "Rp (5)", "-5"),
        ("id", "+5", "5"),
        ("id", "12%", "12"),
        ("id", "12 %", "12"),
        ("id", "0,5", "0.5"),
        ("id", ",5", "0.5"),
        ("id", "007", "7"),
        ("de", "12,-- €", "12"),
        ("en", "$1,234.50", "1234.50"),
        ("en", "$.50", "0.50"),
        ("en", "Rs.50", "50"),
        ("en", "5.00 US$", "5.00"),
        ("fr", "1 234,56", "1234.56"),
        ("fr", "1\u00a0234,56", "1234.56"),
        ("fr", "1\u202f234\u2009567,56 €", "1234567.56"),
        ("nl", "€ 1.234,56", "1234.56"),
        ("nl", "9" * 40, "9" * 40),
    ],
)
def test_numbers_are_read_as_they_are_printed(language: str, text: str, expected: str) -> None:
    value = read(text, "decimal", RULES[language])
    assert isinstance(value, Decimal)
    assert str(value) == expected


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("id", "12,5,0"),
        ("id", "12.50"),
        ("id", "1.23"),
        ("id", "1.2345"),
        ("id", "1234.567"),
        ("id", "0.123"),
        ("id", "1.234.56"),
        ("id", "1 234"),
        ("id", "5,"),
        ("id", "12,50 CR"),
        ("id", "--5"),
        ("id", "-5-"),
        ("id", "(-5)"),
        ("id", "(5"),
        ("id", "5)"),
        ("id", "5,50,-"),
        ("id", "1e5"),
        ("id", "1e999999"),
        ("id", "NaN"),
        ("id", "Infinity"),
        ("id", "\u0661\u0662"),
        ("id", "1_000"),
        ("id", "0x10"),
        ("id", "Rp"),
        ("id", "3 pcs"),
        ("en", "1,23,456"),
        ("en", "12,34"),
        ("fr", "12 34"),
        ("fr", "1 234.567"),
        ("de", "9" * 41),
        ("de", "5 " * 5000),
    ],
)
def test_what_is_not_clearly_a_number_is_not_guessed(language: str, text: str) -> None:
    with pytest.raises(Unreadable):
        read(text, "decimal", RULES[language])


def test_the_message_says_what_was_expected() -> None:
    with pytest.raises(Unreadable, match=r"^'12,5,0' is not a number such as 1\.234,56$"):
        read("12,5,0", "decimal", RULES["id"])
    with pytest.raises(Unreadable, match=r"^'2,5' is not a whole number$"):
        read("2,5", "integer", RULES["id"])
    with pytest.raises(Unreadable, match=r"^'31/02/2025' is not a date such as 7 Agustus 2025$"):
        read("31/02/2025", "date", RULES["id"])
    with pytest.raises(Unreadable, match=r"^'none' has no digits$"):
        read("none", "digits", RULES["id"])


@pytest.mark.parametrize("type_", ["text", "digits", "integer", "decimal", "date"])
@pytest.mark.parametrize("blank", ["", "  ", "\u00a0\t\n"])
def test_nothing_printed_is_no_value(type_: ValueType, blank: str) -> None:
    assert read(blank, type_, RULES["en"]) is None


def test_texts_digits_and_whole_numbers() -> None:
    assert read("  PT Simon\nJakarta ", "text", RULES["id"]) == "PT Simon\nJakarta"
    assert read("07.154.206.5-901.8000", "digits", RULES["id"]) == "0715420659018000"
    assert read("1.234", "integer", RULES["id"]) == 1234
    assert read("-3", "integer", RULES["id"]) == -3
    for fraction in ("3,00", "3,5"):
        with pytest.raises(Unreadable):
            read(fraction, "integer", RULES["id"])


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("id", "7 Agustus 2025", date(2025, 8, 7)),
        ("id", "07/08/2025", date(2025, 8, 7)),
        ("id", "7 AGT. 2025", date(2025, 8, 7)),
        ("id", "7-Agu-25", date(2025, 8, 7)),
        ("id", "31 Desember 1999", date(1999, 12, 31)),
        ("id", "5 August 2025", date(2025, 8, 5)),
        ("en", "August 3 , 2014", date(2014, 8, 3)),
        ("en", "Aug. 3rd, 2014", date(2014, 8, 3)),
        ("en", "3rd of August", None),
        ("en", "3 Sept 2014", date(2014, 9, 3)),
        ("en", "May 1, 2020", date(2020, 5, 1)),
        ("en", "February 29, 2023", None),
        ("en", "03/04/2024", None),
        ("fr", "1er août 2020", date(2020, 8, 1)),
        ("fr", "1 ER AOUT 2020", date(2020, 8, 1)),
        ("fr", "3 déc. 2020", date(2020, 12, 3)),
        ("fr", "3 de\u0301c. 2020", date(2020, 12, 3)),
        ("fr", "30 juil. 2020", date(2020, 7, 30)),
        ("fr", "30 jui 2020", None),
        ("de", "7. März 2024", date(2024, 3, 7)),
        ("de", "7 Mrz 2024", date(2024, 3, 7)),
        ("de", "1.1.24", date(2024, 1, 1)),
        ("nl", "3 mrt 2024", date(2024, 3, 3)),
        ("nl", "31-12-2020", date(2020, 12, 31)),
        ("nl", "31-13-2020", None),
        ("nl", "2020-12-31", date(2020, 12, 31)),
        ("nl", "31-12-2020 " * 1000, None),
    ],
)
def test_dates(language: str, text: str, expected: date | None) -> None:
    if expected is None:
        with pytest.raises(Unreadable):
            read(text, "date", RULES[language])
    else:
        assert read(text, "date", RULES[language]) == expected


@given(languages, amounts)
def test_a_number_shown_is_the_number_read(language: str, amount: Decimal) -> None:
    back = read(show(amount, RULES[language]), "decimal", RULES[language])
    assert back == amount
    assert isinstance(back, Decimal)
    assert back.as_tuple().exponent == amount.as_tuple().exponent


@given(languages, st.integers(-(10**30), 10**30))
def test_a_whole_number_shown_is_the_one_read(language: str, number: int) -> None:
    assert read(show(number, RULES[language]), "integer", RULES[language]) == number


@given(languages, st.dates())
def test_a_date_shown_is_the_date_read(language: str, day: date) -> None:
    assert read(show(day, RULES[language]), "date", RULES[language]) == day


@given(languages, st.text(max_size=50), st.sampled_from(["text", "digits", "integer", "decimal", "date"]))
def test_any_text_is_read_or_unreadable(language: str, text: str, type_: ValueType) -> None:
    try:
        value = read(text, type_, RULES[language])
    except Unreadable:
        return
    assert value is None or isinstance(value, str | int | Decimal | date)


@given(languages, st.text(alphabet="0123456789.,' -()%Rp€", max_size=30))
def test_what_looks_like_a_number_keeps_its_digits(language: str, text: str) -> None:
    """No digit is ever lost or invented."""
    try:
        value = read(text, "decimal", RULES[language])
    except Unreadable:
        return
    digits = "".join(character for character in text if character.isdigit())
    shown = "".join(character for character in f"{value:f}" if character.isdigit()) if value is not None else ""
    assert shown.lstrip("0") == digits.lstrip("0")


@pytest.mark.parametrize(
    "text",
    ["1" * 200, "1.111" * 40, "Rp " * 66, "( " * 99, "5" + " " * 100_000, "-" * 199, "1.234.567," * 19, "9" * 100_000],
)
def test_hostile_texts_take_no_time(text: str) -> None:
    started = time.perf_counter()
    for _ in range(20):
        for type_ in ("decimal", "date", "integer"):
            try:
                read(text, type_, RULES["id"])
            except Unreadable:
                continue
    assert time.perf_counter() - started < 5  # not quadratic; the machine may be busy


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Decimal("37050.00"), "37.050,00"),
        (Decimal("-0.5"), "-0,5"),
        (Decimal("1E+3"), "1.000"),
        (1234, "1.234"),
        (date(2025, 8, 7), "7 Agustus 2025"),
        (True, "ya"),
        ("as it is", "as it is"),
        (None, ""),
        (Decimal("1E+999999"), "1E+999999"),
        (Decimal("NaN"), "NaN"),
    ],
)
def test_values_are_shown_as_the_document_prints_them(value: object, shown: str) -> None:
    assert show(value, RULES["id"]) == shown  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("locale", "text", "expected"),
    [
        (Locale(base="id", currencies=("Rp", "IDR")), "Rp. 12.500", "12500"),
        (Locale(base="id", currencies=("Rp", "IDR")), "Rp.12.500,50", "12500.50"),
        (Locale(base="id", currencies=("Rp", "IDR")), "-Rp. 5", "-5"),
        (Locale(base="id", currencies=("Rp", "IDR")), "12.500 IDR.", "12500"),
        (Locale(base="en", currencies=("Rs", "$")), "Rs. 12,500.50", "12500.50"),
        (Locale(base="en", currencies=("Rs", "$")), "$.50", "0.50"),
    ],
)
def test_a_full_stop_may_follow_any_sign(locale: Locale, text: str, expected: str) -> None:
    assert read(text, "decimal", locale_rules(locale)) == Decimal(expected)
