"""A row that is not read leaves a finding, whatever the reason."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from reportlab.pdfgen.canvas import Canvas

from support.pages import HEIGHT, WIDTH, extract_file
from waybill_documents.extraction import Extraction
from waybill_documents.faults import FaultCode
from waybill_documents.mapping.model import Mapping


def mapping(columns: dict[str, Any], begins: str, locale: dict[str, Any] | None = None, **rule: Any) -> Mapping:
    table = {"columns": columns, "row": {"begins": begins}, **rule}
    given: dict[str, Any] = {"format": 1, "name": "test_v1", "title": "Test", "tables": {"lines": table}}
    return Mapping.model_validate(given | ({"locale": locale} if locale else {}))


def read(
    rule: Mapping, folder: Path, lines: Sequence[tuple[str, ...]], step: float = 14, head: float = 20
) -> Extraction:
    """A table with a left column, and right-aligned ones beside it."""
    canvas = Canvas(str(folder / "table.pdf"), pagesize=(WIDTH, HEIGHT), invariant=1)
    canvas.setFont("Helvetica", 10)
    y = 100.0
    for number, cells in enumerate(lines):
        canvas.drawString(60, HEIGHT - y, cells[0])
        for column, text in enumerate(cells[1:]):
            canvas.drawRightString(330 + 100 * column, HEIGHT - y, text)
        y += step if number else head
    canvas.save()
    return extract_file(rule, folder / "table.pdf")


def unread(found: Extraction) -> list[str]:
    return [str(each.params["text"]) for each in found.findings if each.code is FaultCode.UNREAD_LINE]


TWO: dict[str, Any] = {"item": {"header": "Item"}, "amount": {"header": "Amount", "type": "decimal"}}


@pytest.mark.parametrize("end", [None, "Total"])
@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("step", [12, 14, 30])
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_amounts_of_another_language_are_told(
    end: str | None, required: bool, step: float, order: tuple[int, ...], tmp_path: Path
) -> None:
    """With the default locale, one of these three rows can be read."""
    amounts = ["250", "1.234,50", "12,50"]
    lines = [("Item", "Amount"), *((f"Pipe {at}", amounts[at]) for at in order), ("Total", "1.497,00")]
    columns = TWO | {"amount": TWO["amount"] | {"required": required}}
    found = read(mapping(columns, "amount", end=end), tmp_path, lines, step)
    assert len(found.extracted.tables["lines"]) == 1
    assert {"Pipe 1 1.234,50", "Pipe 2 12,50"} <= set(unread(found))


def test_a_table_of_which_no_row_can_be_read_tells_so_even_if_it_is_not_required(tmp_path: Path) -> None:
    lines = [("Item", "Amount"), ("Pipe", "1.234,50"), ("Nut", "12,50"), ("Total", "1.247,00")]
    found = read(mapping(TWO, "amount", end="Total", required=False), tmp_path, lines)
    assert unread(found) == ["Pipe 1.234,50", "Nut 12,50"]


def test_everything_above_the_end_belongs_to_the_table(tmp_path: Path) -> None:
    lines = [("Item", "Amount"), ("Pipe", "250"), (" ",), (" ",), ("Paid by cheque",), ("Total", "250")]
    assert unread(read(mapping(TWO, "amount", end="Total"), tmp_path, lines)) == ["Paid by cheque"]
    assert unread(read(mapping(TWO, "amount", end="Total", skip=["Paid"]), tmp_path, lines)) == []
    assert unread(read(mapping(TWO, "amount"), tmp_path, lines[:-1])) == []


def test_a_text_above_the_first_row_is_told_and_the_rest_of_the_header_is_not(tmp_path: Path) -> None:
    lines = [("Item", "Amount"), ("of steel",), ("Pipe", "250"), ("Total", "250")]
    rule = mapping(TWO, "amount", end="Total")
    assert unread(read(rule, tmp_path, lines, step=12, head=30)) == ["of steel"]
    assert unread(read(rule, tmp_path, lines, step=20, head=11)) == []
    lines[1] = ("", "(EUR)")
    assert unread(read(rule, tmp_path, lines, step=12, head=12)) == []


def test_what_is_below_a_table_without_an_end_is_not_a_row(tmp_path: Path) -> None:
    lines = [("Item", "Amount"), ("Pipe", "250"), ("Nut", "12"), (" ",), (" ",), (" ",), ("IBAN DE12", "10.12.2025")]
    assert unread(read(mapping(TWO, "amount"), tmp_path, lines)) == []


NUMBERS = ["1", "12", "1,234.50", "1.234,50", "12,50", "0.5", "1'000.00", "1 000,00", "12 pcs", "EUR 5", "5,-"]


@pytest.mark.parametrize("begins", ["item", "qty", "amount"])
@pytest.mark.parametrize("end", [None, "Total"])
def test_a_row_is_read_or_told(begins: str, end: str | None, tmp_path: Path) -> None:
    """However numbers are printed, each printed amount is in a row, in a finding, or in a line that is told."""
    for seed in range(25):
        dice = random.Random(seed)
        columns: dict[str, Any] = {
            "item": {"header": "Item"},
            "qty": {"header": "Quantity", "type": dice.choice(["integer", "decimal"]), "required": dice.random() < 0.5},
            "amount": {"header": "Amount", "type": "decimal", "required": dice.random() < 0.5},
        }
        rows = [
            (f"Ware {no} {dice.choice(['', 'of steel', 'x 12'])}", dice.choice(NUMBERS), dice.choice(NUMBERS))
            for no in range(1, dice.randint(2, 6))
        ]
        lines = [("Item", "Quantity", "Amount"), *rows, ("Total", "", "1")]
        found = read(mapping(columns, begins, end=end), tmp_path, lines, step=dice.choice([12, 15, 24]))
        kept = " ".join(value.raw for row in found.extracted.tables["lines"] for value in row.values())
        told = " ".join(str(each.params) for each in found.findings)
        for name, *_ in rows:
            assert " ".join(name.split()[:2]) in f"{kept} {told}", f"seed {seed}: {name} of {rows}"
