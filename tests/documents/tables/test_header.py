"""The header of a table is found by its words, wherever they are and in however many lines."""

from __future__ import annotations

from typing import Any

import pytest

from support.pages import Printed, lines, table
from waybill_documents.mapping.model import TableRule
from waybill_documents.tables.header import Header, HeaderWords, find_header


def rule(**columns: Any) -> HeaderWords:
    given = {name: its if isinstance(its, dict) else {"header": its} for name, its in columns.items()}
    return HeaderWords.of(TableRule.model_validate({"columns": given, "row": {"begins": next(iter(given))}}))


WORDS = rule(no="No", name="Nama Barang / Jasa", unit="Satuan", price="Harga Satuan", amount="Jumlah")


def header(*strings: Printed, words: HeaderWords = WORDS) -> Header:
    found = find_header(lines(*strings), words)
    assert found is not None
    return found


def test_one_line() -> None:
    found = header(*table(["No  Nama Barang / Jasa     Satuan   Harga Satuan   Jumlah", "1   x   pcs  5  5"]))
    assert found.boxes == {
        "no": (30, 100, 40, 110),
        "name": (50, 100, 140, 110),
        "unit": (165, 100, 195, 110),
        "price": (210, 100, 270, 110),
        "amount": (285, 100, 315, 110),
    }
    assert (found.first_line, found.last_line) == (0, 0)


@pytest.mark.parametrize("first", ["No", "NO", "No.", "no :"])
def test_spelling_does_not_matter(first: str) -> None:
    found = header(*table([f"{first}   NAMA BARANG/JASA   satuan   Harga  satuan   JUMLAH"]))
    assert set(found.boxes) == {"no", "name", "unit", "price", "amount"}


def test_wrapped_over_two_lines() -> None:
    found = header(
        *table(
            [
                "No   Nama Barang /    Satuan    Harga     Jumlah",
                "     Jasa                       Satuan          ",
                "1    Pipa             pcs       5         5     ",
            ]
        )
    )
    assert list(found.boxes["price"]) == [190, 100, 220, 122]
    assert list(found.boxes["unit"]) == [140, 100, 170, 110]
    assert list(found.boxes["name"]) == [55, 100, 120, 122]
    assert (found.first_line, found.last_line) == (0, 1)


def test_wrapped_over_three_lines_with_short_cells_in_the_middle() -> None:
    found = header(
        *table(
            [
                "     Nama               Harga            ",
                "No   Barang    Satuan   Satuan    Jumlah ",
                "     / Jasa                              ",
                "1    Pipa      pcs      5         5      ",
            ]
        )
    )
    assert list(found.boxes["name"]) == [55, 100, 85, 134]
    assert list(found.boxes["price"]) == [150, 100, 180, 122]
    assert (found.first_line, found.last_line) == (0, 2)


@pytest.mark.parametrize("shift", [-8, 0, 8])
def test_wrapped_and_aligned_left_right_or_centred(shift: float) -> None:
    found = header(
        (30, 100, "No"),
        (60, 100, "Nama Barang / Jasa"),
        (200, 100, "Satuan"),
        (260 + shift, 94, "Harga"),
        (258, 106, "Satuan"),
        (330, 100, "Jumlah"),
    )
    assert set(found.boxes) == {"no", "name", "unit", "price", "amount"}
    assert found.boxes["price"][1] == 94
    assert list(found.boxes["unit"]) == [200, 100, 230, 110]


def test_the_longer_phrase_takes_its_words() -> None:
    words = rule(qty="Jumlah", amount="Jumlah Harga", price="Harga")
    found = header(*table(["Jumlah     Harga      Jumlah Harga"]), words=words)
    assert list(found.boxes["amount"]) == [140, 100, 200, 110]
    assert found.boxes["qty"][0] == 30
    assert found.boxes["price"][0] == 85


def test_alternatives() -> None:
    words = rule(no=["No", "#"], name=["Description", "Item"], amount=["Total", "Amount"])
    assert set(header(*table(["#     Item      Amount"]), words=words).boxes) == {"no", "name", "amount"}


def test_columns_may_be_missing_but_not_most_of_them() -> None:
    assert "unit" not in header(*table(["No   Nama Barang / Jasa   Harga Satuan   Jumlah"])).boxes
    assert find_header(lines(*table(["No    Jumlah"])), WORDS) is None
    assert find_header(lines(), WORDS) is None


def test_optional_columns_do_not_count() -> None:
    words = rule(no="No", amount="Jumlah", a={"header": "A", "optional": True}, b={"header": "B", "optional": True})
    assert set(header(*table(["No     Jumlah"]), words=words).boxes) == {"no", "amount"}
    assert find_header(lines(*table(["A     B     C"])), words) is None


def test_the_same_words_elsewhere_are_not_the_header() -> None:
    found = header(
        *table(
            [
                "No. Invoice : 1        Jumlah halaman : 3",
                "Harga satuan dan jumlah dalam Rupiah, no retur",
                "",
                "No   Nama Barang / Jasa   Satuan   Harga Satuan   Jumlah",
                "1    Satuan Jumlah No     pcs      5              5",
            ]
        )
    )
    assert found.first_line == 2
    assert list(found.boxes["no"]) == [30, 136, 40, 146]


def test_a_row_close_below_does_not_name_a_column() -> None:
    words = rule(no="No", name="Nama", amount="Jumlah", off={"header": "Diskon", "optional": True})
    found = header(*table(["No   Nama                   Jumlah", "1    Voucher     Diskon     500"]), words=words)
    assert set(found.boxes) == {"no", "name", "amount"}
    assert found.last_line == 0


def test_the_first_of_two_equal_headers() -> None:
    row = "No   Nama Barang / Jasa   Satuan   Harga Satuan   Jumlah"
    assert header(*table([row, "1    a    pcs   5   5", row])).first_line == 0


def test_words_well_apart_from_all_columns_are_a_column_without_a_name() -> None:
    found = header(*table(["No   Nama Barang / Jasa   Gudang     Satuan   Harga Satuan (Rp)   Jumlah"]))
    assert found.strangers == {"#0"}
    assert list(found.boxes["#0"]) == [160, 100, 190, 110]
