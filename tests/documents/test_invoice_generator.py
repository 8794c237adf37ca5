"""The invoice generator prints everything, legibly and correctly, and always the same for the same seed."""

from __future__ import annotations

import dataclasses
import random
import time
from collections import Counter
from decimal import Decimal

import pypdfium2
import pytest
from hypothesis import HealthCheck, given, settings

from support.invoices import (
    LAYOUTS,
    Invoice,
    Layout,
    make_invoice,
    make_layout,
    plan,
    print_invoice,
    problems,
    reference_invoice,
    tamper,
    varied,
    wording,
)
from support.invoices.blocks import in_words
from support.invoices.catalogue import UNIT_CODES, UNITS
from support.invoices.generator import MAX_DISCOUNT, MAX_PRICE, MAX_QTY
from support.invoices.layout import Dates, Labels, NoDiscount, Npwp, Order, Rules, Rupiah
from support.invoices.numbers import dotted_npwp, number, terbilang
from support.invoices.strategies import invoices, layouts
from support.invoices.truth import line, settle

each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)


def strings(pdf: bytes) -> list[list[str]]:
    """The strings of each page, in the order of the content stream."""
    document = pypdfium2.PdfDocument(pdf)
    read = []
    for page in document:
        text = page.get_textpage()
        found = page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_TEXT], textpage=text)
        # A hyphen at the end of a line is read as a soft hyphen.
        read.append([item.extract().replace("\x02", "-").replace("\ufffe", "-").strip() for item in found])
    document.close()
    return read


def words(pdf: bytes) -> list[Counter[str]]:
    return [Counter(word for text in page for word in text.split()) for page in strings(pdf)]


def expected_words(invoice: Invoice, layout: Layout) -> Counter[str]:
    """How often each word must be printed at least, however it is broken into lines and pages."""
    said = [
        *(invoice.seller_name, *invoice.seller_address, wording.npwp(invoice.seller_npwp, layout)),
        *(invoice.number, wording.day(invoice.date, layout), wording.day(invoice.due_date, layout)),
        *(invoice.buyer_name, *invoice.buyer_address, wording.npwp(invoice.buyer_npwp, layout)),
        *(invoice.buyer_email or "", in_words(invoice), "DPP Nilai Lain", "PPN 12%", "Subtotal", "Total"),
    ]
    for item in invoice.lines:
        said += [str(item.no), item.code or "", item.description, item.hs_code or "", item.unit]
        said += [wording.qty(item.qty, layout), *wording.money(item.unit_price, layout)]
        said += [*wording.discount(item.discount, layout), *wording.money(item.amount, layout)]
    for value in (invoice.subtotal, invoice.discount, invoice.dpp, invoice.ppn, invoice.total):
        said += wording.money(value, layout) if value is not None else ()
    return Counter(word for text in said for word in text.split())


def test_the_reference_has_510_lines_on_17_pages() -> None:
    invoice, layout = reference_invoice()
    assert len(invoice.lines) == 510
    assert problems(invoice) == []
    pages = words(print_invoice(invoice, layout))
    assert len(pages) == 17
    for page, found in enumerate(pages, start=1):
        assert found >= Counter(f"Halaman {page} dari 17 No Kode Nama Barang / Jasa HS Code Qty".split())


@each_layout
def test_everything_the_invoice_says_is_on_paper(layout: Layout) -> None:
    invoice = make_invoice(11, 45)
    found = sum(words(print_invoice(invoice, layout)), Counter())
    assert expected_words(invoice, layout) - found == Counter()


@given(invoice=invoices(max_lines=20), layout=layouts())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_invoice_can_be_printed_in_any_layout(invoice: Invoice, layout: Layout) -> None:
    assert problems(invoice) == []
    found = sum(words(print_invoice(invoice, layout)), Counter())
    assert expected_words(invoice, layout) - found == Counter()


def test_seeds_give_invoices_that_add_up_and_fit() -> None:
    for seed in range(40):
        invoice = make_invoice(seed)
        assert problems(invoice) == []
        assert print_invoice(invoice, make_layout(seed))


@each_layout
def test_the_widest_values_fit(layout: Layout) -> None:
    """Printing raises if a text would overlap its neighbour, so this asserts only that it prints."""
    units = sorted({unit.upper() for unit in UNIT_CODES})
    widest = [line(1900 + no, "x", MAX_QTY, unit, Decimal("99990")) for no, unit in enumerate(units)]
    widest += [
        line(2000, "x", Decimal(10), "pcs", MAX_PRICE, discount=MAX_DISCOUNT, code="GGG-00000", hs_code="000000")
    ]
    invoice = settle(dataclasses.replace(make_invoice(1), lines=tuple(widest)))
    for seed in range(4):
        print_invoice(invoice, varied(layout, random.Random(seed)))
    for rupiah in Rupiah:
        print_invoice(invoice, dataclasses.replace(layout, rupiah=rupiah, sen=True))


@each_layout
def test_sums_are_carried_over_from_page_to_page(layout: Layout) -> None:
    invoice = make_invoice(3, 64)
    pages = plan(invoice, layout)
    found = words(print_invoice(invoice, layout))
    assert len(pages) == len(found) > 1
    running = Decimal(0)
    for page, printed in zip(pages, found, strict=True):
        assert page.brought == (running if page is not pages[0] else None)
        assert printed["Pindahan"] == (page is not pages[0])
        running += sum(part.line.amount for part in page.parts if part.begins)
        assert page.carried == (running if page is not pages[-1] else None)
        assert printed["pindahan"] == (page is not pages[-1])
        assert printed["Subtotal"] == printed["Terbilang"] + printed["Terbilang:"] == (page is pages[-1])
        if page.carried is not None:
            assert printed[wording.money(page.carried, layout)[1].split()[-1]] >= 1
    assert running == invoice.subtotal


def test_descriptions_wrap_and_break_across_pages() -> None:
    pages = [plan(make_invoice(seed, 200), layout) for seed in range(4) for layout in LAYOUTS]
    heights = {len(part.text) for pages_of_one in pages for page in pages_of_one for part in page.parts}
    assert heights >= {1, 2, 3, 4, 5, 6}
    torn = [page for pages_of_one in pages for page in pages_of_one if page.parts and not page.parts[0].begins]
    assert len(torn) > 10
    bare = [page for pages_of_one in pages for page in pages_of_one if not page.parts]
    assert bare, "sometimes only the totals are left for the last page"


def test_the_same_invoice_gives_the_same_bytes() -> None:
    for layout in LAYOUTS:
        assert print_invoice(make_invoice(5), layout) == print_invoice(make_invoice(5), layout)
    assert make_invoice(5) == make_invoice(5) != make_invoice(6)
    assert make_layout(5) == make_layout(5)


@pytest.mark.parametrize("count", [1, 2000])
def test_one_line_or_two_thousand(count: int) -> None:
    started = time.monotonic()
    pdf = print_invoice(make_invoice(8, count), LAYOUTS[1])
    assert time.monotonic() - started < 10
    assert (len(pypdfium2.PdfDocument(pdf)) == 1) == (count == 1)


@each_layout
def test_pages_are_upright_when_displayed(layout: Layout) -> None:
    document = pypdfium2.PdfDocument(print_invoice(make_invoice(2), layout))
    page = document[0]
    assert page.get_rotation() == layout.rotate
    assert page.get_size() == layout.page
    text = page.get_textpage()
    found = page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_TEXT], textpage=text)
    title = next(item for item in found if item.extract().strip() == "INVOICE")
    # The direction of the letters, turned by the page's rotation in a viewer.
    turned = {(1, 0): 0, (0, 1): 90, (0, -1): 270}[round(title.get_matrix().a), round(title.get_matrix().b)]
    assert turned == layout.rotate


def test_the_content_stream_is_no_guide_to_reading() -> None:
    invoice = make_invoice(2, 12)
    for layout in LAYOUTS:
        written = strings(print_invoice(invoice, layout))[0]
        in_order = strings(print_invoice(invoice, dataclasses.replace(layout, order=Order.READING)))[0]
        assert Counter(written) == Counter(in_order)
        assert (written == in_order) == (layout.order is Order.READING)
        assert any(" " in text for text in written) != layout.word_by_word


def test_layouts_differ_in_everything_that_varies() -> None:
    assert len(LAYOUTS) >= 6
    for choice in (Rupiah, Dates, Npwp, Labels, NoDiscount, Rules, Order):
        used = {value for layout in LAYOUTS for value in vars(layout).values() if isinstance(value, choice)}
        assert used == set(choice)
    for feature, count in {"font": 3, "rotate": 3, "sen": 2, "meta_align": 2, "head_on_every_page": 2}.items():
        assert len({getattr(layout, feature) for layout in LAYOUTS}) == count, feature
    for feature in ("page", "size", "columns", "margin", "heading_align", "buyer_x"):
        assert len({getattr(layout, feature) for layout in LAYOUTS}) >= 3, feature
    assert {6.5, 10} <= {layout.size for layout in LAYOUTS}
    assert {2, 1} == {max(len(column.heading) for column in layout.columns) for layout in LAYOUTS}


def test_every_unit_of_the_list_is_used_and_no_other() -> None:
    used = {unit.lower() for units in UNITS.values() for unit in units}
    assert used == set(UNIT_CODES)


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("0", "nol rupiah"),
        ("11", "sebelas rupiah"),
        ("119", "seratus sembilan belas rupiah"),
        ("1000", "seribu rupiah"),
        ("1001000", "satu juta seribu rupiah"),
        ("205010.10", "dua ratus lima ribu sepuluh rupiah sepuluh sen"),
        ("2000000000000", "dua triliun rupiah"),
    ],
)
def test_amounts_in_words(amount: str, said: str) -> None:
    assert terbilang(Decimal(amount)) == said


def test_numbers_are_indonesian() -> None:
    assert number(Decimal("1234567.89")) == "1.234.567,89"
    assert number(Decimal("1234567.00")) == "1.234.567"
    assert number(Decimal("1E+3"), places=2) == "1.000,00"
    assert number(Decimal("0.125")) == "0,125"


def test_tax_numbers_are_printed_old_and_new() -> None:
    assert dotted_npwp("0715420659018000") == "07.154.206.5-901.8000"
    old = dataclasses.replace(LAYOUTS[0], npwp=Npwp.DOTTED_15)
    assert wording.npwp("0071542065901000", old) == "07.154.206.5-901.000"
    assert wording.npwp("3171542065901000", old) == "3171542065901000"


def test_a_tampered_invoice_has_one_thing_wrong() -> None:
    invoice = make_invoice(4, 20)
    assert problems(tamper.wrong_amount(invoice, 7)) == ["line 7: amount"]
    assert problems(tamper.wrong_subtotal(invoice)) == ["subtotal"]
    assert problems(tamper.missing_line(invoice, 19)) == ["line 19 is numbered 20"]
    strange = tamper.unknown_unit(invoice, 3)
    assert problems(strange) == []
    assert {item.no for item in strange.lines if item.unit.lower() not in UNIT_CODES} == {3}


@each_layout
def test_a_tampered_print_says_what_it_should_not(layout: Layout) -> None:
    invoice = make_invoice(4, 50)
    right, wrong = strings(print_invoice(invoice, layout)), strings(tamper.wrong_carry_over(invoice, layout, page=1))
    changed = [len(Counter(before) - Counter(after)) for before, after in zip(right, wrong, strict=True)]
    assert changed == [1, 1] + [0] * (len(right) - 2)
    nameless = words(print_invoice(tamper.without_buyer_npwp(invoice), layout))[0]
    assert nameless["NPWP"] + nameless["NPWP:"] == 1
    assert "-" in words(print_invoice(tamper.without_buyer_npwp(invoice, printed="-"), layout))[0]
