"""A currency sign and its amount become one word, however far apart they are; a sign in a sentence is text."""

from __future__ import annotations

import pytest

from support.pages import line
from waybill_documents.currencies import Amounts, Headers, join_currencies, join_groups
from waybill_documents.locales import locale_rules
from waybill_documents.mapping.model import Locale

SIGNS = frozenset({"rp", "idr", "€"})
INDONESIAN = locale_rules(Locale(base="id", currencies=("Rp",)))


def joined(text: str) -> list[str]:
    return [word.text for word in join_currencies(line(text), SIGNS).words]


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("Rp 1.000", ["Rp 1.000"]),
        ("Rp              1.000", ["Rp 1.000"]),
        ("rp. 1.000", ["rp. 1.000"]),
        ("Rp              -", ["Rp -"]),
        ("IDR (500)", ["IDR (500)"]),
        ("Rp −5", ["Rp −5"]),
        ("12 pcs   Rp 500  Rp    6.000", ["12", "pcs", "Rp 500", "Rp 6.000"]),
        ("12   Rp 500", ["12", "Rp 500"]),
        ("Rp1.000  Rp", ["Rp1.000", "Rp"]),
        ("Rp      Rp 5", ["Rp", "Rp 5"]),
        ("Rp lima ribu", ["Rp", "lima", "ribu"]),
        ("no sign 5", ["no", "sign", "5"]),
        ("5 € 6", ["5", "€ 6"]),
    ],
)
def test_a_sign_joins_the_number_that_follows(printed: str, words: list[str]) -> None:
    assert joined(printed) == words


def test_a_sign_in_a_sentence_is_text() -> None:
    assert joined("harga Rp 500 per m") == ["harga", "Rp", "500", "per", "m"]
    assert joined("harga Rp        12        500") == ["harga", "Rp", "12", "500"]


def test_the_joined_word_spans_both() -> None:
    (word,) = join_currencies(line("Rp      1.000"), SIGNS).words
    assert (word.left, word.right) == (0, 65)


def test_a_description_that_ends_with_a_sign_does_not_reach_over_a_column() -> None:
    headers = [(0.0, 0.0, 25.0, 10.0), (60.0, 0.0, 80.0, 10.0), (100.0, 0.0, 120.0, 10.0)]
    printed = line("5) Rp               12")
    assert [word.text for word in join_currencies(printed, SIGNS, Headers(tuple(headers))).words] == ["5)", "Rp", "12"]
    own = [
        (40.0, 0.0, 60.0, 10.0)
    ]  # the header in the middle of a cell, the sign at its left and the number at its right
    assert [word.text for word in join_currencies(printed, SIGNS, Headers(tuple(own))).words] == ["5)", "Rp 12"]


def test_a_sign_before_a_code_beside_its_centred_header_is_text_too() -> None:
    name, code, price = (0.0, 0.0, 60.0, 10.0), (130.0, 0.0, 150.0, 10.0), (160.0, 0.0, 200.0, 10.0)
    headers = Headers((name, code, price), frozenset({name, code}))
    printed = line("     Rp              5404     Rp 500")
    assert [word.text for word in join_currencies(printed, SIGNS, headers).words] == ["Rp", "5404", "Rp 500"]


def test_a_sign_after_a_colon_belongs_to_its_amount() -> None:
    assert joined("PPN 12% : Rp        500") == ["PPN", "12%", ":", "Rp 500"]


def test_a_sign_before_a_code_is_the_end_of_the_text_before_it() -> None:
    name, code, price = (0.0, 0.0, 60.0, 10.0), (100.0, 0.0, 140.0, 10.0), (160.0, 0.0, 200.0, 10.0)
    headers = Headers((name, code, price), frozenset({name, code}))
    printed = line("Pompa (Jasa)   Rp   841391     Rp 500")
    assert [word.text for word in join_currencies(printed, SIGNS, headers).words] == [
        "Pompa",
        "(Jasa)",
        "Rp",
        "841391",
        "Rp 500",
    ]


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("Gutschrift       - 20,00", ["Gutschrift", "- 20,00"]),
        ("5     – 20,00", ["5", "– 20,00"]),
        ("Kabel - 20 m", ["Kabel", "-", "20", "m"]),
        ("12    -     20,00", ["12", "-", "20,00"]),
        ("Pipa    - besar", ["Pipa", "-", "besar"]),
        ("Saldo    - Rp 5", ["Saldo", "- Rp 5"]),
        ("Saldo    Rp - 5", ["Saldo", "Rp - 5"]),
        ("Saldo    Rp     - 5", ["Saldo", "Rp - 5"]),
        ("-", ["-"]),
    ],
)
def test_a_minus_joins_the_number_a_space_after_it(printed: str, words: list[str]) -> None:
    assert [word.text for word in Amounts(INDONESIAN).joined(line(printed)).words] == words


def test_a_dash_for_an_empty_cell_is_not_the_minus_of_the_next() -> None:
    headers = [(40.0, 0.0, 70.0, 10.0), (80.0, 0.0, 120.0, 10.0)]
    printed = line("            - Rp   20,00")
    assert [word.text for word in Amounts(INDONESIAN).joined(printed, Headers(tuple(headers))).words] == [
        "-",
        "Rp 20,00",
    ]
    printed = line("Rp - Rp 20,00")
    assert [word.text for word in Amounts(INDONESIAN).joined(printed).words] == ["Rp -", "Rp 20,00"]


def test_a_description_of_nothing_but_a_sign_keeps_it() -> None:
    headers = [(0.0, 0.0, 10.0, 10.0), (20.0, 0.0, 75.0, 10.0), (100.0, 0.0, 120.0, 10.0), (130.0, 0.0, 200.0, 10.0)]
    printed = line("1   Rp              12    Rp   500")
    assert [word.text for word in join_currencies(printed, SIGNS, Headers(tuple(headers))).words] == [
        "1",
        "Rp",
        "12",
        "Rp 500",
    ]


def test_a_line_without_signs_is_left_as_it_is() -> None:
    given = line("12 pcs 500")
    assert join_currencies(given, SIGNS) is given


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("1 234 567,89", ["1 234 567,89"]),
        ("12 345  678,00", ["12 345", "678,00"]),
        ("€1 234,50 5", ["€1 234,50", "5"]),
        ("-1 234", ["-1 234"]),
        ("2024 123", ["2024", "123"]),
        ("1 2345", ["1", "2345"]),
        ("1,5 200", ["1,5 200"]),
        ("tube 12", ["tube", "12"]),
    ],
)
def test_groups_a_space_apart_are_one_number(printed: str, words: list[str]) -> None:
    assert [word.text for word in join_groups(line(printed)).words] == words


def test_only_where_the_locale_groups_by_spaces() -> None:
    french = Amounts(locale_rules(Locale(base="fr")))
    assert [word.text for word in french.joined(line("Vis   € 1 234,50   12")).words] == ["Vis", "€ 1 234,50", "12"]
    indonesian = Amounts(locale_rules(Locale(base="id", currencies=("Rp",))))
    assert [word.text for word in indonesian.joined(line("Rp 1 234")).words] == ["Rp 1", "234"]
