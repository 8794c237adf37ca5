"""The number and date formats of the languages, and how a mapping changes them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

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
