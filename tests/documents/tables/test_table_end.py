"""A table ends where it is said to end, and not where a description has the same words."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from reportlab.pdfgen.canvas import Canvas

from support.pages import HEIGHT, WIDTH, extract_file
from waybill_documents.extraction import Extraction
from waybill_documents.mapping.model import Mapping

AT = {"no": (40, False), "name": (70, False), "qty": (300, True), "amount": (400, True)}
Cells = dict[str, str]


def mapping(**rule: Any) -> Mapping:
    columns = {
        "no": {"header": "No", "type": "integer", "required": True},
        "name": {"header": "Nama Barang"},
        "qty": {"header": "Qty", "type": "decimal"},
        "amount": {"header": "Jumlah", "type": "decimal", "required": True},
    }
    lines = {"columns": columns, "row": {"begins": "no"}, "end": "Subtotal", **rule}
    return Mapping.model_validate(
        {
            "format": 1,
            "name": "test_v1",
            "title": "Test",
            "locale": {"base": "id", "currencies": ["Rp"]},
            "fields": {"subtotal": {"type": "decimal", "label": "Subtotal"}},
            "tables": {"lines": lines},
        }
    )


def read(folder: Path, *pages: list[Cells], **rule: Any) -> Extraction:
    canvas = Canvas(str(folder / "table.pdf"), pagesize=(WIDTH, HEIGHT), invariant=1)
    for lines in pages:
        canvas.setFont("Helvetica", 9)
        for number, cells in enumerate(lines):
            for column, text in cells.items():
                x, right = AT[column]
                (canvas.drawRightString if right else canvas.drawString)(x, HEIGHT - 100 - 12 * number, text)
        canvas.showPage()
    canvas.save()
    return extract_file(mapping(**rule), folder / "table.pdf")


HEADER = {"no": "No", "name": "Nama Barang", "qty": "Qty", "amount": "Jumlah"}
END = {"name": "Subtotal", "amount": "3.000"}


def row(no: int, name: str = "Pipa") -> Cells:
    return {"no": str(no), "name": name, "qty": "5", "amount": "1.000"}


def names(found: Extraction) -> list[Any]:
    return [line["name"].value for line in found.extracted.tables["lines"]]


@pytest.mark.parametrize("text", ["Subtotal kamar mandi", "Subtotal", "Subtotal: 12 pcs", "SUBTOTAL ruang"])
def test_a_wrapped_line_with_the_words_of_the_end_is_text(text: str, tmp_path: Path) -> None:
    between = [HEADER, row(1), {"name": text}, row(2), {"name": "besar"}, END]
    found = read(tmp_path, between)
    assert (names(found), found.findings) == ([f"Pipa {text}", "Pipa besar"], [])
    assert found.extracted.fields["subtotal"].value == Decimal(3000)
    last = [HEADER, row(1), row(2), {"name": text}, END]
    assert (names(read(tmp_path, last)), found.findings) == (["Pipa", f"Pipa {text}"], [])


def test_it_is_text_at_the_bottom_of_a_page_too(tmp_path: Path) -> None:
    first = [HEADER, row(1), row(2), {"name": "Subtotal kamar"}, {"name": "mandi"}]
    found = read(tmp_path, first, [HEADER, row(3), END])
    assert (names(found), found.findings) == (["Pipa", "Pipa Subtotal kamar mandi", "Pipa"], [])
    assert names(read(tmp_path, first, [row(3), END])) == ["Pipa", "Pipa Subtotal kamar mandi", "Pipa"]


def test_it_is_text_above_a_carried_sum(tmp_path: Path) -> None:
    carried = {"name": "Jumlah pindahan", "amount": "1.000"}
    first = [HEADER, row(1), {"name": "Subtotal kamar"}, carried]
    carry = {"column": "amount", "out": "Jumlah pindahan", "into": "Pindahan"}
    found = read(tmp_path, first, [HEADER, {"name": "Pindahan", "amount": "1.000"}, row(2), END], carry=carry)
    assert (names(found), found.findings) == (["Pipa Subtotal kamar", "Pipa"], [])


def test_a_heading_below_the_table_ends_it(tmp_path: Path) -> None:
    found = read(tmp_path, [HEADER, row(1), {}, {"name": "Subtotal"}, {"amount": "1.000"}])
    assert names(found) == ["Pipa"]
    found = read(tmp_path, [HEADER, row(1), {"name": "Subtotal"}], [{"name": "Terima kasih"}])
    assert (names(found), found.findings) == (["Pipa"], [])


def test_an_end_with_an_amount_is_never_text(tmp_path: Path) -> None:
    found = read(tmp_path, [HEADER, row(1), {"name": "Subtotal", "amount": "1.000"}, row(2)])
    assert names(found) == ["Pipa"]


def test_a_description_like_a_carried_sum_between_two_rows_is_text(tmp_path: Path) -> None:
    carry = {"column": "amount", "out": "Jumlah pindahan", "into": "Pindahan"}
    found = read(tmp_path, [HEADER, row(1), {"name": "Jumlah pindahan 12"}, row(2), END], carry=carry)
    assert (names(found), found.findings) == (["Pipa Jumlah pindahan 12", "Pipa"], [])
    assert found.extracted.carries["lines"] == []
