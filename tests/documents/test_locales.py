"""The number and date formats of the languages, and how a mapping changes them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waybill_documents.dates import date_format
from waybill_documents.faults import MappingFault
from waybill_documents.locales import MONTHS, locale_rules
from waybill_documents.mapping.model import Locale
from waybill_documents.value_text import Unreadable, read, show


def test_without_a_locale_it_is_english() -> None:
    assert read("1,234.50", "decimal", locale_rules(None)) == Decimal("1234.50")


@pytest.mark.parametrize("language", sorted(MONTHS))
def test_every_month_is_known_in_full_and_in_short(language: str) -> None:
    rules = locale_rules(Locale.model_validate({"base": language, "dates": ["d MMMM yyyy", "d MMM yyyy"]}))
    for month, name in enumerate(MONTHS[language], start=1):
        day = date(2025, month, 2)
        short = date_format("MMM").write(day, MONTHS[language])
        for written in (name, name.upper(), name.lower(), short, f"{short}."):
            assert read(f"2 {written} 2025", "date", rules) == day


@pytest.mark.parametrize(
    ("locale", "text", "expected"),
    [
        ({"base": "de", "decimal": ".", "group": ["'"]}, "1'234.50", "1234.50"),
        ({"base": "de", "decimal": ".", "group": ["'"]}, "1’234.50", "1234.50"),
        ({"base": "de", "group": [".", " "]}, "1 234,50", "1234.50"),
        ({"base": "de", "group": [".", " "]}, "1.234,50", "1234.50"),
        ({"base": "en", "decimal": ","}, "1.234,50", "1234.50"),
        ({"base": "de", "group": [","]}, "1,234.50", "1234.50"),
        ({"base": "en", "group": []}, "1234.50", "1234.50"),
        ({"base": "en", "currencies": ["Bs."]}, "Bs. 5", "5"),
    ],
)
def test_a_mapping_says_what_differs(locale: dict[str, Any], text: str, expected: str) -> None:
    rules = locale_rules(Locale.model_validate(locale))
    value = read(text, "decimal", rules)
    assert value == Decimal(expected)
    assert read(show(value, rules), "decimal", rules) == value


def test_group_signs_are_not_mixed_within_a_number() -> None:
    rules = locale_rules(Locale(base="de", group=(".", " ")))
    with pytest.raises(Unreadable):
        read("1.234 567,00", "decimal", rules)


def test_own_currencies_replace_the_known_ones_and_own_months_are_added() -> None:
    rules = locale_rules(Locale(base="en", currencies=("Bs.",), months={"Agosto": 8, "Set.": 9}))
    with pytest.raises(Unreadable):
        read("$ 5", "decimal", rules)
    assert read("3 agosto 2024", "date", rules) == date(2024, 8, 3)
    assert read("3 set 2024", "date", rules) == date(2024, 9, 3)
    assert read("3 May 2024", "date", rules) == date(2024, 5, 3)


@pytest.mark.parametrize(
    ("locale", "where"),
    [
        ({"base": "de", "decimal": ",", "group": [","]}, "locale"),
        ({"base": "de", "group": [",", "."]}, "locale"),
        ({"base": "de", "dates": ["dd.MM"]}, "locale.dates"),
        ({"base": "de", "dates": ["dd.MM.YYYY"]}, "locale.dates"),
        ({"base": "de", "dates": ["dd.dd.yyyy"]}, "locale.dates"),
        ({"base": "de", "dates": [""]}, "locale.dates"),
        ({"base": "de", "dates": []}, "locale.dates"),
    ],
)
def test_a_locale_that_contradicts_itself_is_refused(locale: dict[str, Any], where: str) -> None:
    with pytest.raises(MappingFault) as fault:
        locale_rules(Locale.model_validate(locale))
    assert fault.value.where == where


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("ddMMyyyy", "07082025", date(2025, 8, 7)),
        ("yyMMdd", "250807", date(2025, 8, 7)),
        ("dd/MM/yy", "07/08/69", date(2069, 8, 7)),
        ("dd/MM/yy", "07/08/70", date(1970, 8, 7)),
        ("d 'de' MMMM 'de' yyyy", "7 de August de 2025", date(2025, 8, 7)),
        ("d. MMM yyyy 'um''s'", "7. Aug 2025 um's", date(2025, 8, 7)),
        ("dd.MM.yyyy", "07 . 08 . 2025", date(2025, 8, 7)),
        ("d M yyyy", "7 8 2025", date(2025, 8, 7)),
        ("d M yyyy", "782025", None),
        ("dd MMM, yyyy", "07 Aug,2025", date(2025, 8, 7)),
        ("yyyy/MM/dd", "0000/01/01", None),
    ],
)
def test_formats_of_a_mapping(form: str, text: str, expected: date | None) -> None:
    rules = locale_rules(Locale(base="en", dates=(form,)))
    assert date_format(form).read(text, rules.months) == expected
    if expected is not None and "yy" not in form.replace("yyyy", ""):
        assert date_format(form).read(date_format(form).write(expected, rules.month_names), rules.months) == expected


PRINTED = {
    # What CLDR's long, medium and short formats print for 1 August and 9 December 2025, and what vendors print.
    "es": [
        "1 de agosto de 2025",
        "1 ago 2025",
        "1/8/25",
        "1/8/2025",
        "01-08-2025",
        "1-ago-2025",
        "1º de agosto de 2025",
    ],
    "it": ["1 agosto 2025", "1 ago 2025", "01/08/25", "01/08/2025", "1º agosto 2025", "01.08.2025", "1° agosto 2025"],
    "pt": ["1 de agosto de 2025", "1 de ago. de 2025", "01/08/2025", "01/08/25", "1.º de agosto de 2025", "01-08-2025"],
    "pl": ["1 sierpnia 2025", "1 sie 2025", "1.08.2025", "01.08.2025 r.", "1 sierpnia 2025 r.", "1 sierpień 2025"],
}


@pytest.mark.parametrize(("base", "text"), [(base, text) for base, texts in PRINTED.items() for text in texts])
def test_dates_as_they_are_printed_in_each_language(base: str, text: str) -> None:
    assert read(text, "date", locale_rules(Locale.model_validate({"base": base}))) == date(2025, 8, 1)


@pytest.mark.parametrize(
    ("base", "text", "expected"),
    [
        ("es", "1.234,50 €", "1234.50"),
        ("it", "€ 1.234,50", "1234.50"),
        ("pt", "R$ 1.234,50", "1234.50"),
        ("pl", "1 234,50 zł", "1234.50"),
        ("pl", "1\u00a0234,50 PLN", "1234.50"),
    ],
)
def test_amounts_as_they_are_printed_in_each_language(base: str, text: str, expected: str) -> None:
    assert read(text, "decimal", locale_rules(Locale.model_validate({"base": base}))) == Decimal(expected)


@pytest.mark.parametrize("base", sorted(MONTHS))
@settings(max_examples=50)
@given(number=st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12))
def test_a_number_that_is_shown_can_be_read_back(base: str, number: Decimal) -> None:
    rules = locale_rules(Locale.model_validate({"base": base}))
    assert read(show(number, rules), "decimal", rules) == number


@pytest.mark.parametrize("base", sorted(MONTHS))
@settings(max_examples=50)
@given(day=st.dates(min_value=date(1000, 1, 1)))
def test_a_date_that_is_written_in_any_format_can_be_read_back(base: str, day: date) -> None:
    rules = locale_rules(Locale.model_validate({"base": base}))
    for form in rules.dates:
        if "yyyy" in form.text or 1970 <= day.year < 2070:
            assert form.read(form.write(day, rules.month_names), rules.months) == day
    assert read(show(day, rules), "date", rules) == day
