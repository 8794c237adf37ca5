"""The main property: however an invoice is printed, the values that are read are those that were printed.

The generator was written from a description of the invoices, without the mapping; see `support.invoices`.
"""

from __future__ import annotations

import dataclasses
import io
import random
from collections.abc import Callable
from pathlib import Path

import pypdfium2
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from reportlab.pdfgen.canvas import Canvas

from support.invoice_comparison import differences, misplaced, pt_simon
from support.invoices import (
    LAYOUTS,
    Invoice,
    Layout,
    make_invoice,
    make_layout,
    print_invoice,
    reference_invoice,
    varied,
)
from support.invoices.strategies import invoices, layouts
from support.invoices.truth import settle
from support.pages import extract_file

each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)


# Without shrinking, which takes minutes. A failing invoice already says what is wrong with which line.
UNHURRIED = settings(
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


def said(invoice: Invoice) -> Invoice:
    """A dash as description means that there is none."""
    assume(all(line.description != "-" for line in invoice.lines))
    return invoice


def faults(invoice: Invoice, layout: Layout, folder: Path) -> list[str]:
    """The differences between the printed and the read values, including their places."""
    path = folder / "invoice.pdf"
    path.write_bytes(print_invoice(invoice, layout))
    read = extract_file(pt_simon(), path)
    return differences(invoice, layout, read) + misplaced(path, read)


@each_layout
@pytest.mark.parametrize("count", [1, 2, 70])
def test_every_layout_comes_back(layout: Layout, count: int, tmp_path: Path) -> None:
    assert faults(make_invoice(17, count), layout, tmp_path) == []


@each_layout
def test_every_layout_comes_back_with_other_habits(layout: Layout, tmp_path: Path) -> None:
    for seed in range(3):
        assert faults(make_invoice(seed, 25), varied(layout, random.Random(seed)), tmp_path) == []


@given(invoice=invoices(max_lines=12).map(said), layout=layouts())
@settings(UNHURRIED, max_examples=20)
def test_any_invoice_in_any_layout_comes_back(invoice: Invoice, layout: Layout, tmp_path: Path) -> None:
    assert faults(invoice, layout, tmp_path) == []


def test_seeds_come_back(tmp_path: Path) -> None:
    for seed in range(20):
        assert faults(make_invoice(seed), make_layout(seed), tmp_path) == [], f"seed {seed}"


def in_the_margin(canvas: Canvas, width: float, height: float, page: int) -> None:
    canvas.setFont("Helvetica", 7)
    canvas.translate(12, 100)
    canvas.rotate(90)
    canvas.drawString(0, 0, f"Dicetak oleh sistem SIMON-ERP v4.2 halaman {page} - dokumen sah 2025")


def watermark(canvas: Canvas, width: float, height: float, page: int) -> None:
    canvas.setFont("Helvetica-Bold", 70)
    canvas.translate(width / 2, height / 2)
    canvas.rotate(45)
    canvas.drawCentredString(0, 0, "SALINAN 2025")


def stamp(canvas: Canvas, width: float, height: float, page: int) -> None:
    canvas.setFont("Helvetica-Bold", 40)
    canvas.drawCentredString(width * 0.45, height * 0.4, "SUDAH LUNAS 12")


def stamp_at_an_angle(canvas: Canvas, width: float, height: float, page: int) -> None:
    canvas.setFont("Helvetica-Bold", 26)
    canvas.translate(width * 0.35, height * 0.4)
    canvas.rotate(14)
    canvas.drawString(0, 0, "ASLI UNTUK PEMBELI")


def foot(canvas: Canvas, width: float, height: float, page: int) -> None:
    canvas.setFont("Helvetica", 5)
    canvas.drawString(60, 8, f"Dokumen {page} dicetak 07/08/2025 10:3{page % 10} oleh admin")


def test_lines_drawn_in_turns_word_by_word_on_a_turned_page(tmp_path: Path) -> None:
    assert faults(make_invoice(2298), make_layout(2298), tmp_path) == []


@pytest.mark.parametrize("draw", [in_the_margin, watermark, stamp, stamp_at_an_angle, foot])
def test_what_is_printed_over_an_invoice_does_not_change_it(
    draw: Callable[[Canvas, float, float, int], None], tmp_path: Path
) -> None:
    path = tmp_path / "invoice.pdf"
    for seed in (0, 6, 9, 24, 26):
        invoice, layout = make_invoice(seed), make_layout(seed)
        path.write_bytes(printed_over(print_invoice(invoice, layout), draw))
        assert differences(invoice, layout, extract_file(pt_simon(), path)) == [], f"seed {seed}"


def printed_over(pdf: bytes, draw: Callable[[Canvas, float, float, int], None]) -> bytes:
    document = pypdfium2.PdfDocument(pdf)
    for number, page in enumerate(document, start=1):
        sheet = io.BytesIO()
        width, height = page.get_size()
        canvas = Canvas(sheet, pagesize=(width, height))
        draw(canvas, width, height, number)
        canvas.save()
        over = pypdfium2.PdfDocument(sheet.getvalue())
        printed = over.page_as_xobject(0, document)
        page.insert_obj(printed.as_pageobject())
        page.gen_content()
    result = io.BytesIO()
    document.save(result)
    return result.getvalue()


def test_the_same_line_over_and_over_comes_back(tmp_path: Path) -> None:
    """Pages that end with the same text must not look as if they had a footer."""
    invoice = make_invoice(5, 120, whole=True)
    wrapped = dataclasses.replace(
        invoice.lines[0], description="Pipa Galvanis medium tahan karat untuk air bersih dengan sertifikat dan garansi"
    )
    lines = tuple(dataclasses.replace(wrapped, no=no, is_service=False) for no in range(1, 121))
    for layout in LAYOUTS[:3]:
        assert faults(settle(dataclasses.replace(invoice, lines=lines)), layout, tmp_path) == []


@pytest.mark.parametrize("ending", ["Rp", "5) Rp", "harga Rp", "Rp 12.500", "Rp."])
def test_a_description_that_ends_with_a_currency_sign_comes_back(ending: str, tmp_path: Path) -> None:
    """The sign belongs neither to the code in the next column nor to the number of a later one."""
    for seed in (3, 8, 14):
        invoice, layout = make_invoice(seed, 3), make_layout(seed)
        lines = tuple(
            dataclasses.replace(line, description=f"{line.description.rsplit(' ', 2)[0]} {ending}")
            for line in invoice.lines
        )
        assert faults(dataclasses.replace(invoice, lines=lines), layout, tmp_path) == []


def test_the_reference_comes_back(tmp_path: Path) -> None:
    invoice, layout = reference_invoice()
    assert faults(invoice, layout, tmp_path) == []


def test_two_thousand_lines_come_back(tmp_path: Path) -> None:
    assert faults(make_invoice(8, 2000), LAYOUTS[1], tmp_path) == []


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("start", range(0, 2000, 250))
def test_many_seeds_come_back(start: int, tmp_path: Path) -> None:
    wrong = {}
    for seed in range(start, start + 250):
        found = faults(make_invoice(seed + 50_000), make_layout(seed + 50_000), tmp_path)
        if found:
            wrong[seed] = found[:5]
    assert wrong == {}


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@given(invoice=invoices(max_lines=40).map(said), layout=layouts())
@settings(UNHURRIED, max_examples=500)
def test_long_invoices_in_any_layout_come_back(invoice: Invoice, layout: Layout, tmp_path: Path) -> None:
    assert faults(invoice, layout, tmp_path) == []
