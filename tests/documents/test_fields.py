"""Fields have the text that a person reads beside their labels, without other text nearby."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from support.pages import Printed, extract_pages, page, table
from waybill_documents.extraction import Extraction
from waybill_documents.faults import FaultCode
from waybill_documents.geometry import Page
from waybill_documents.mapping.model import Mapping
from waybill_documents.values import Value


def mapping(**fields: Any) -> Mapping:
    return Mapping.model_validate(
        {
            "format": 1,
            "name": "test",
            "title": "Test",
            "locale": {"base": "id", "currencies": ["Rp"]},
            "fields": fields,
        }
    )


def read(given: str | list[Printed] | tuple[Page, ...], **fields: Any) -> Extraction:
    if isinstance(given, str):
        given = table(given.strip("\n").split("\n"))
    pages = given if isinstance(given, tuple) else (page(*given),)
    return extract_pages(mapping(**fields), *pages)


def value(given: str | list[Printed] | tuple[Page, ...], **rule: Any) -> Value:
    return read(given, it=rule).extracted.fields["it"]


@pytest.mark.parametrize(
    "printed",
    [
        "Tanggal : 7 Agustus 2025",
        "Tanggal: 7 Agustus 2025",
        "Tanggal :7 Agustus 2025",
        "Tanggal:7 Agustus 2025",
        "TANGGAL 7 Agustus 2025",
        "Tanggal   :          7 Agustus 2025",
        "tanggal .... 7 Agustus 2025",
        "Kota : Jakarta      Tanggal : 7 Agustus 2025",
        "Tanggal : 7 Agustus 2025      Kota : Jakarta",
        "Tanggal : 7 Agustus 2025 Kota : Jakarta",
        "Tanggal = 07/08/2025",
        "Tanggal : 7  Agustus  2025",
    ],
)
def test_right_of_its_label(printed: str) -> None:
    found = read(printed, it={"type": "date", "label": "Tanggal"}, city={"label": "Kota"}).extracted.fields["it"]
    assert found.value == date(2025, 8, 7)
    assert found.rule == "fields.it"
    assert found.confidence == 95


def test_the_box_is_that_of_the_value_alone() -> None:
    found = value("No. Invoice : 25 080", label="No. Invoice")
    assert (found.raw, found.places[0].page, found.places[0].box) == ("25 080", 1, (100, 100, 130, 110))


def test_a_value_joined_to_its_label_has_its_part_of_the_box() -> None:
    assert value("Tanggal:07/08/2025", label="Tanggal").places[0].box == (70, 100, 120, 110)
    assert value("Tanggal :07/08/2025", label="Tanggal").places[0].box == (75, 100, 125, 110)


def test_a_value_ends_at_a_wide_gap() -> None:
    assert value("Kepada : PT Maju Bersama       INVOICE", label="Kepada").value == "PT Maju Bersama"


def test_a_value_ends_at_the_next_label_only_if_that_is_one() -> None:
    fields: dict[str, Any] = {"name": {"label": "Nama"}, "city": {"label": "Kota"}}
    found = read("Nama : Toko Kota Lama Kota : Jakarta", **fields).extracted.fields
    assert (found["name"].value, found["city"].value) == ("Toko Kota Lama", "Jakarta")


def test_a_label_is_a_whole_phrase() -> None:
    assert value("Subtotal : 5\nTotal : 7", type="decimal", label="Total").value == Decimal(7)
    assert value("PPN 12% : 5", type="decimal", label="PPN 12%").value == Decimal(5)


def test_alternatives_for_a_label() -> None:
    assert value("Nomor Invoice : 12", label=["No. Invoice", "Nomor Invoice"]).value == "12"


def test_a_label_of_two_lines_of_text_is_not_found_across_them() -> None:
    assert value("Jatuh\nTempo : 5", label="Jatuh Tempo").value is None


def test_signs_apart_from_their_amounts() -> None:
    assert value("Total :   Rp            1.250.000,50", type="decimal", label="Total").value == Decimal("1250000.50")


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("Saldo - 500,00", "-500.00"),
        ("Saldo : - 500,00", "-500.00"),
        ("Saldo :- 500,00", "-500.00"),
        ("Saldo       – 500,00", "-500.00"),
        ("Saldo       -     500,00", "-500.00"),
        ("Saldo : − 500,00", "-500.00"),
        ("Saldo : - Rp 500,00", "-500.00"),
        ("Saldo - Rp 500,00", "-500.00"),
        ("Saldo : Rp - 500,00", "-500.00"),
        ("Saldo : 500,00 -", "-500.00"),
        ("Saldo -            500,00", "500.00"),
        ("Saldo ------- 500,00", "500.00"),
        ("Saldo .... 500,00", "500.00"),
    ],
)
def test_a_minus_that_stands_apart_is_part_of_the_amount(printed: str, expected: str) -> None:
    found = value(printed, type="decimal", label="Saldo")
    assert found.value == Decimal(expected)
    assert any(sign in found.raw for sign in "-–−") is expected.startswith("-")


def test_a_dash_before_what_is_no_amount_is_only_a_mark() -> None:
    assert value("Invoice - 12345", label="Invoice").value == "12345"
    assert value("Invoice : - 12345", label="Invoice").value == "12345"
    assert value("Tanggal - 7 Agustus 2025", type="date", label="Tanggal").value == date(2025, 8, 7)


BLOCK = """
INVOICE                          Kirim ke :
Kepada : PT Maju Bersama         Gudang 5
         Jl. Sudirman 52         Bekasi
         Jakarta 12190
NPWP   : 123


Catatan
"""


def test_a_block_begins_beside_its_label() -> None:
    assert value(BLOCK, label="Kepada", direction="block").value == "PT Maju Bersama"
    rest = value(BLOCK, label="Kepada", direction="block", lines="2-", until=["NPWP"], join=", ")
    assert rest.value == "Jl. Sudirman 52, Jakarta 12190"
    assert rest.places[0].box == (75, 124, 150, 146)


@pytest.mark.parametrize(
    ("lines", "expected"), [("1", "a"), ("2", "b"), ("2-3", "b c"), ("2-", "b c d"), ("1-9", "a b c d"), ("5", None)]
)
def test_ranges_of_lines_below_a_label(lines: str, expected: str | None) -> None:
    assert value("Kepada\na\nb\nc\nd", label="Kepada", direction="below", lines=lines).value == expected


def test_below_takes_what_is_under_the_label_and_nothing_beside_it() -> None:
    printed = """
Tanggal         Nomor          Kota
07/08/2025      INV-12         Jakarta
"""
    assert value(printed, label="Nomor", direction="below").value == "INV-12"
    assert value(printed, type="date", label="Tanggal", direction="below").value == date(2025, 8, 7)


def test_below_ends_where_the_white_gets_wide() -> None:
    assert value("Kepada\na\n\n\n\nb", label="Kepada", direction="below", lines="1-").value == "a"


def test_two_blocks_very_close_to_each_other() -> None:
    strings: list[Printed] = [
        (30, 100, "Penjual"),
        (150, 100, "Pembeli"),
        (30, 112, "PT Simon Jaya Abadi"),  # ends at 125
        (150, 112, "PT Maju"),
        (30, 124, "Jl. Kebon Sirih 17"),
        (150, 124, "Jl. Melati 5"),
    ]
    assert (
        value(strings, label="Penjual", direction="below", lines="1-").value == "PT Simon Jaya Abadi Jl. Kebon Sirih 17"
    )
    assert value(strings, label="Pembeli", direction="below", lines="1-").value == "PT Maju Jl. Melati 5"


def test_until_ends_a_block() -> None:
    printed = "Kepada : PT Maju\n         Jl. Melati\n         Email : a@b.c\n         Jakarta"
    found = value(printed, label="Kepada", direction="block", lines="1-", until=["Email"])
    assert found.value == "PT Maju Jl. Melati"


def test_a_tall_title_beside_a_block_does_not_end_it() -> None:
    strings: list[Printed] = [
        (300, 96, "INVOICE", 40),
        *[(30, 100.0 + 12 * number, text) for number, text in enumerate(["Kepada :", "PT Maju", "Jl. Melati"])],
    ]
    assert value(strings, label="Kepada", direction="below", lines="1-").value == "PT Maju Jl. Melati"


def test_after_and_before() -> None:
    printed = """
NPWP : 1
Kepada : PT Maju
NPWP : 2
"""
    assert value(printed, label="NPWP", before="Kepada").value == "1"
    assert value(printed, label="NPWP", after="Kepada").value == "2"
    assert value(printed, label="NPWP", after="Pengirim").value is None
    beside = "NPWP : 1     Kepada     NPWP : 2"
    assert value(beside, label="NPWP", before="Kepada").value == "1"
    assert value(beside, label="NPWP", after="Kepada").value == "2"


def test_an_area() -> None:
    strings: list[Printed] = [(30, 30, "left top"), (400, 30, "right top"), (400, 60, "second"), (30, 700, "foot")]
    assert value(strings, area={"left": 50, "bottom": 10}, lines="1-").value == "right top second"
    assert value(strings, area={"left": 50, "bottom": 10}, lines="2").value == "second"
    assert value(strings, area={"top": 80}).value == "foot"
    assert value(strings, area={"top": 80}).confidence == 80
    assert value(strings, area={"left": 40, "top": 40, "right": 60, "bottom": 60}).value is None


def test_a_pattern() -> None:
    found = value("Halaman 1 dari 17", type="integer", pattern=r"Halaman \d+ dari (\d+)")
    assert (found.value, found.places[0].box, found.confidence) == (17, (105, 100, 115, 110), 90)
    assert value("PT SIMON", pattern="PT .*").value == "PT SIMON"


def test_a_pattern_picks_from_beside_a_label() -> None:
    assert value("Email : kantor a@b.c", label="Email", pattern="[^ ]+@[^ ]+").value == "a@b.c"
    assert value("Email : tidak ada\nx@y.z", label="Email", pattern="[^ ]+@[^ ]+").value is None


def pages(*texts: str) -> tuple[Page, ...]:
    return tuple(page(*table(text.split("\n")), number=number) for number, text in enumerate(texts, start=1))


def test_first_last_and_any_page() -> None:
    three = pages("Total : 1", "Total : 2", "Total : 3")
    assert value(three, label="Total", page="first").value == "1"
    assert value(three, label="Total", page="last").value == "3"
    assert value(three, label="Total").value == "1"
    assert value(three, label="Total", pick="last").value == "3"
    assert value(three, label="Total", pick="last").places[0].page == 3
    assert value(pages("x", "Total : 2", "x"), label="Total").value == "2"


def test_two_values_that_differ_cast_doubt_and_equal_ones_do_not() -> None:
    assert value("Total : 5\nTotal : 6", label="Total").confidence == 75
    assert value("Total : 5\nTotal : 5", label="Total").confidence == 95
    assert value(pages("Total : 5", "Total : 6"), label="Total").confidence == 75


def test_what_is_no_value_of_its_type_is_passed_over() -> None:
    found = value("Total halaman\nTotal : 12.500", type="decimal", label="Total")
    assert (found.value, found.confidence) == (Decimal(12500), 95)


def test_a_required_value_that_is_missing_says_what_was_looked_for() -> None:
    (finding,) = read("nothing", it={"label": ["Tanggal", "Tgl"], "required": True}).findings
    assert finding.message == "it was not found: no page has “Tanggal” or “Tgl”."
    assert (finding.code, finding.path, finding.rule, finding.page) == (
        FaultCode.FIELD_MISSING,
        "it",
        "fields.it",
        None,
    )


def test_a_label_without_a_value_says_where_it_stands() -> None:
    (finding,) = read("Tanggal :\n\n\n\nx", it={"label": "Tanggal", "required": True}).findings
    assert "nothing beside “Tanggal” on page 1" in finding.message
    assert (finding.page, finding.box) == (1, (30, 100, 65, 110))


def test_a_value_that_cannot_be_read_says_why_and_where() -> None:
    extraction = read("Tanggal : besok", it={"type": "date", "label": "Tanggal", "required": True})
    (finding,) = extraction.findings
    assert finding.message.startswith("it: 'besok' is not a date")
    assert (finding.code, finding.box) == (FaultCode.BAD_VALUE, (80, 100, 105, 110))
    assert extraction.extracted.fields["it"].confidence == 0


def test_what_is_not_required_may_be_missing_or_have_a_default() -> None:
    assert read("x", it={"label": "Diskon"}).findings == []
    assert value("x", label="Diskon").confidence == 70
    assert value("x", type="decimal", label="Diskon", default="0").value == Decimal(0)
    assert value("x", type="decimal", label="Diskon", default="0").confidence == 60
    assert value("x", constant="IDR").value == "IDR"
    assert value("x", constant="IDR").places == ()


@pytest.mark.parametrize(
    ("printed", "rule"),
    [
        ("Rabatt 1.50.0", {"type": "decimal", "label": "Rabatt", "default": "0"}),
        ("Rabatt : Rp 1.50.0", {"type": "decimal", "label": "Rabatt", "default": "0"}),
        ("Diskon 4% 1.000", {"type": "decimal", "label": "Diskon", "default": "0"}),
        ("Jatuh Tempo 31.02.2025", {"type": "date", "label": "Jatuh Tempo"}),
        ("Rabatt Qty\nRabatt 1.50.0", {"type": "decimal", "label": "Rabatt"}),
    ],
)
def test_a_printed_value_that_cannot_be_read_is_told_and_not_replaced(printed: str, rule: dict[str, Any]) -> None:
    extraction = read(printed, it=rule)
    (finding,) = extraction.findings
    assert (finding.code, finding.path, finding.key) == (FaultCode.BAD_VALUE, "it", "field.unreadable")
    found = extraction.extracted.fields["it"]
    assert (found.value, found.raw, found.confidence) == (None, finding.params["raw"], 0)


@pytest.mark.parametrize("printed", ["No  Diskon  Jumlah", "Diskon halaman 2", "Diskon : -", "Diskon"])
def test_a_label_that_labels_nothing_is_no_value(printed: str) -> None:
    found = read(printed, it={"type": "decimal", "label": "Diskon", "default": "0"})
    assert found.findings == []
    assert found.extracted.fields["it"].value == Decimal(0)


def test_what_was_looked_for_is_said_with_its_surroundings() -> None:
    def message(**more: str) -> str:
        (finding,) = read("NPWP : 1\nKepada : x\nNPWP", it={"label": "Email", "required": True, **more}).findings
        assert finding.params == {"field": "it", "labels": ["Email"], **more}
        return finding.message

    assert message() == "it was not found: no page has “Email”."
    assert message(after="Kepada") == "it was not found: there is no “Email” after “Kepada”."
    assert message(after="Kepada", before="x") == "it was not found: there is no “Email” after “Kepada” and before “x”."


def test_a_second_label_with_the_value_is_found_when_the_first_has_none() -> None:
    assert value("Total\n\n\nTotal : 5", type="decimal", label="Total").value == Decimal(5)


def test_a_label_that_is_also_the_beginning_of_a_longer_one() -> None:
    printed = "Total Diskon : 3\nTotal : 5"
    fields: dict[str, Any] = {
        "total": {"type": "decimal", "label": "Total"},
        "off": {"type": "decimal", "label": "Total Diskon"},
    }
    found = read(printed, **fields).extracted.fields
    assert (found["total"].value, found["off"].value) == (Decimal(5), Decimal(3))
