"""Rows whose cells are centred vertically keep their texts, and nothing is guessed silently where that is unclear."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal, cast

import pytest
from reportlab.pdfgen.canvas import Canvas

from support.invoices.sheet import wrap
from support.pages import HEIGHT, WIDTH, extract_file
from waybill_documents.extraction import Extraction
from waybill_documents.mapping.model import Mapping

Row = tuple[int, str, str]

WORDS = [
    "Pipa",
    "galvanis",
    "ukuran",
    "besar",
    "Mur",
    "kecil",
    "sekali",
    "Cat",
    "tembok",
    "putih",
    "tahan",
    "karat",
    "untuk",
    "air",
    "bersih",
]
AT = {"no": 40, "code": 65, "name": 120, "qty": 370, "amount": 460}
SIZE = 9.0
MAPPING = Mapping.model_validate(
    {
        "format": 1,
        "name": "test_v1",
        "title": "Test",
        "locale": {"base": "id"},
        "tables": {
            "lines": {
                "columns": {
                    "no": {"header": "No", "type": "integer", "required": True},
                    "code": {"header": "Kode"},
                    "name": {"header": "Nama Barang"},
                    "qty": {"header": "Qty", "type": "decimal", "required": True},
                    "amount": {"header": "Jumlah", "type": "decimal", "required": True},
                },
                "row": {"begins": "no"},
                "end": "Total",
            }
        },
    }
)


class Print:
    """A table on one or several pages, whose shorter cells are at the top, in the middle or at the bottom of a row."""

    def __init__(self, path: Path, align: Literal["top", "middle", "bottom"], gap: float, leading: float) -> None:
        self._canvas = Canvas(str(path), pagesize=(WIDTH, HEIGHT), invariant=1)
        self._share = {"top": 0.0, "middle": 0.5, "bottom": 1.0}[align]
        self._gap, self._leading = gap, leading

    def rows(self, rows: list[Row], per_page: int) -> None:
        y = self._header(100)
        for at, (no, name, code) in enumerate(rows):
            if at and at % per_page == 0:
                self._canvas.showPage()
                y = self._header(80)
            cells = {"name": wrap(name, "Helvetica", SIZE, 150), "code": wrap(code, "Helvetica", SIZE, 40)}
            high = max(len(lines) for lines in cells.values())
            for column, lines in {**cells, "no": (str(no),), "qty": ("5",), "amount": ("1.000,00",)}.items():
                top = y + self._leading * (high - len(lines)) * self._share
                for number, text in enumerate(lines):
                    self._put(column, top + number * self._leading, text)
            y += self._leading * high + self._gap
        self._put("name", y, "Total")
        self._put("amount", y, "1.000,00")
        self._canvas.save()

    def _header(self, y: float) -> float:
        for column, text in zip(AT, ("No", "Kode", "Nama Barang", "Qty", "Jumlah"), strict=True):
            self._put(column, y, text)
        return y + self._leading + self._gap + 2

    def _put(self, column: str, y: float, text: str) -> None:
        self._canvas.setFont("Helvetica", SIZE)
        draw = self._canvas.drawRightString if column in ("qty", "amount") else self._canvas.drawString
        draw(AT[column], HEIGHT - y, text)


def made(seed: int) -> tuple[list[Row], int]:
    """Rows of one to five lines, and how many of them fit on a page."""
    dice = random.Random(seed)
    rows = [
        (
            no,
            " ".join(dice.choice(WORDS) for _ in range(dice.choice((1, 2, 6, 10, 16)))),
            " ".join(dice.choice(("A-1", "B/22", "C-333-Z")) for _ in range(dice.choice((1, 1, 2, 3)))),
        )
        for no in range(1, dice.randint(1, 14) + 1)
    ]
    return rows, dice.choice((4, 6, 20))


def texts(found: Extraction) -> list[Row]:
    rows = found.extracted.tables["lines"]
    return [(cast("int", row["no"].value), str(row["name"].value), str(row["code"].value)) for row in rows]


@pytest.mark.parametrize(("gap", "leading"), [(4, 10.8), (2, 10.8), (8, 12), (1, 10)])
@pytest.mark.parametrize("align", ["top", "middle"])
def test_every_text_comes_back_with_its_own_row(
    align: Literal["top", "middle"], gap: float, leading: float, tmp_path: Path
) -> None:
    for seed in range(12):
        rows, per_page = made(seed)
        Print(tmp_path / "table.pdf", align, gap, leading).rows(rows, per_page)
        found = extract_file(MAPPING, tmp_path / "table.pdf")
        assert (texts(found), found.findings) == (rows, []), f"seed {seed}"
        assert {row["name"].confidence for row in found.extracted.tables["lines"]} == {95}


@pytest.mark.parametrize(("align", "gap"), [("middle", 0), ("bottom", 4), ("bottom", 1)])
def test_what_is_unclear_is_told_or_doubted(align: Literal["middle", "bottom"], gap: float, tmp_path: Path) -> None:
    """Where all lines are equally far apart, or the numbers are at the bottom, a wrong text is never a certain one."""
    for seed in range(12):
        rows, per_page = made(seed)
        Print(tmp_path / "table.pdf", align, gap, 10.8).rows(rows, per_page)
        found = extract_file(MAPPING, tmp_path / "table.pdf")
        read = found.extracted.tables["lines"]
        wrong = [row for row, text, printed in zip(read, texts(found), rows, strict=True) if text != printed]
        doubted = [row for row in read if min(row["name"].confidence, row["code"].confidence) < 95]
        assert found.findings or not wrong or len(doubted) >= len(wrong) / 2, f"seed {seed}"


@pytest.mark.parametrize("rows", [[3], [1, 3], [2, 2, 4], [5, 1, 2]])
def test_equal_rows_at_the_top_are_not_taken_for_centred_ones(rows: list[int], tmp_path: Path) -> None:
    given = [(no, " ".join(["galvanis tahan karat bersih"] * lines), "A") for no, lines in enumerate(rows, start=1)]
    Print(tmp_path / "table.pdf", "top", 0, 10.8).rows(given, 20)
    assert texts(extract_file(MAPPING, tmp_path / "table.pdf")) == given


def test_a_note_below_each_description_stays_with_it(tmp_path: Path) -> None:
    """It stands closer to the next row, so both texts are doubted; but it is only below the numbers, never above."""
    canvas = Canvas(str(tmp_path / "table.pdf"), pagesize=(WIDTH, HEIGHT), invariant=1)
    canvas.setFont("Helvetica", SIZE)

    def put(y: float, **cells: str) -> None:
        for column, text in cells.items():
            canvas.drawString(AT[column], HEIGHT - y, text)

    put(100, no="No", code="Kode", name="Nama Barang", qty="Qty", amount="Jumlah")
    for at in range(3):
        put(120 + 30 * at, no=str(at + 1), code="A", name="Pipa", qty="5", amount="10")
        put(138 + 30 * at, name=f"catatan {at}")
    put(220, name="Total", amount="30")
    canvas.save()
    found = extract_file(MAPPING, tmp_path / "table.pdf")
    assert [name for _, name, _ in texts(found)] == [f"Pipa catatan {at}" for at in range(3)]
    assert [row["name"].confidence for row in found.extracted.tables["lines"]] == [70, 70, 70]
