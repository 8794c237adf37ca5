"""Compares what was read from a printed invoice with the invoice: every field, cell, carry-over and place."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from lxml import etree

from support.invoices import Invoice, Layout, plan, wording
from support.invoices.catalogue import UNIT_CODES
from support.invoices.truth import half_up
from support.pages import read_pages
from support.records import pt_simon_loaded
from waybill_documents.extraction import Extraction
from waybill_documents.geometry import Box, Page, Place, Word
from waybill_documents.mapping.model import Mapping
from waybill_documents.text_lines import lines_of
from waybill_documents.values import Value

_COLUMNS = {
    "no": "no",
    "code": "code",
    "name": "description",
    "hs_code": "hs_code",
    "qty": "qty",
    "unit": "unit",
    "price": "unit_price",
    "discount": "discount",
    "amount": "amount",
}


def pt_simon() -> Mapping:
    """The shipped mapping, as the extraction takes it."""
    return pt_simon_loaded().mapping


def expected_fields(invoice: Invoice, layout: Layout, page_count: int) -> dict[str, Any]:
    def digits(npwp: str) -> str:
        return "".join(sign for sign in wording.npwp(npwp, layout) if sign.isdigit())

    return {
        "seller_name": invoice.seller_name,
        "seller_npwp": digits(invoice.seller_npwp),
        "number": invoice.number,
        "date": invoice.date,
        "due_date": invoice.due_date,
        "page_count": page_count,
        "buyer_name": invoice.buyer_name,
        "buyer_address": ", ".join(invoice.buyer_address),
        "buyer_npwp": digits(invoice.buyer_npwp),
        "buyer_email": invoice.buyer_email,
        "subtotal": invoice.subtotal,
        "invoice_discount": invoice.discount or Decimal(0),
        "other_tax_base": invoice.dpp,
        "vat_total": invoice.ppn,
        "total": invoice.total,
    }


def expected_carries(invoice: Invoice, layout: Layout) -> Iterator[tuple[int, str, Decimal, int]]:
    begun = 0
    for number, page in enumerate(plan(invoice, layout), start=1):
        if page.brought is not None:
            yield number, "into", page.brought, begun
        begun += sum(part.begins for part in page.parts)
        if page.carried is not None:
            yield number, "out", page.carried, begun


def differences(invoice: Invoice, layout: Layout, read: Extraction) -> list[str]:
    """Everything that was read differently from what was printed."""
    found = [f"finding: {finding.message}" for finding in read.findings]
    for name, wanted in expected_fields(invoice, layout, len(plan(invoice, layout))).items():
        got = read.extracted.fields[name].value
        if got != wanted:
            found.append(f"{name}: {got!r} instead of {wanted!r}")
    rows = read.extracted.tables["lines"]
    if len(rows) != len(invoice.lines):
        found.append(f"{len(rows)} rows instead of {len(invoice.lines)}")
    for row, line in zip(rows, invoice.lines, strict=False):
        for column, attribute in _COLUMNS.items():
            wanted = getattr(line, attribute)
            if row[column].value != wanted:
                found.append(f"line {line.no}: {column}: {row[column].value!r} instead of {wanted!r}")
    carries = [
        (carry.page, carry.direction, carry.amount, carry.after_rows) for carry in read.extracted.carries["lines"]
    ]
    if carries != list(expected_carries(invoice, layout)):
        found.append(f"carries: {carries} instead of {list(expected_carries(invoice, layout))}")
    return found


def xml_differences(invoice: Invoice, xml: bytes) -> list[str]:
    """Everything in the XML that differs from what the tax rules give for the invoice."""
    goods = etree.fromstring(xml).findall(".//GoodService")
    found = [] if len(goods) == len(invoice.lines) else [f"{len(goods)} goods instead of {len(invoice.lines)}"]
    of_invoice = Decimal(0)
    for good, line in zip(goods, invoice.lines, strict=False):
        said = {element.tag: element.text or "" for element in good}
        share = Decimal(said["TotalDiscount"]) - line.discount
        of_invoice += share
        base = line.amount - share
        other = half_up(base * 11 / 12)
        wanted = {
            "Opt": "B" if line.is_service else "A",
            "Code": (line.hs_code or "").ljust(6, "0")[:6],
            "Name": line.description,
            "Unit": UNIT_CODES[line.unit.lower()],
            "Price": f"{line.unit_price:.2f}",
            "TaxBase": f"{base:.2f}",
            "OtherTaxBase": f"{other:.2f}",
            "VATRate": "12",
            "VAT": f"{half_up(other * 12 / 100):.2f}",
            "STLGRate": "0",
            "STLG": "0",
        }
        found += [
            f"line {line.no}: {name}: {said[name]!r} instead of {text!r}"
            for name, text in wanted.items()
            if said[name] != text
        ]
        if Decimal(said["Qty"]) != line.qty:
            found.append(f"line {line.no}: Qty: {said['Qty']} instead of {line.qty}")
        exact = (invoice.discount or Decimal(0)) * line.amount / (invoice.subtotal or Decimal(1))
        if abs(share - exact) > Decimal("0.01"):
            found.append(f"line {line.no}: {share} of the discount instead of {exact}")
    if of_invoice != (invoice.discount or Decimal(0)):
        found.append(f"{of_invoice} of the discount {invoice.discount} was dealt out")
    return found


def misplaced(path: Path, read: Extraction) -> list[str]:
    """Values whose boxes contain something else than their text."""
    pages = {page.number: _Sorted(page) for page in read_pages(path)}
    found = []
    values: list[tuple[str, Value]] = list(read.extracted.fields.items())
    for number, row in enumerate(read.extracted.tables["lines"], start=1):
        values += [(f"line {number}: {column}", value) for column, value in row.items()]
    for name, value in values:
        if bool(value.raw) != bool(value.places):
            found.append(f"{name}: {value.raw!r} stands at {value.places}")
        inside = "".join(_text(pages[place.page], place) for place in value.places)
        if inside != _plain(value.raw):
            found.append(f"{name}: {value.raw!r} stands where {inside!r} is printed")
    found += [
        f"carried over on page {carry.page}: {carry.raw!r} stands elsewhere"
        for carry in read.extracted.carries["lines"]
        if _text(pages[carry.page], carry.place) != _plain(carry.raw)
    ]
    return found


class _Sorted:
    """A page with its words sorted by height, because thousands of values are looked up."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.words = sorted(page.words, key=_middle)
        self.middles = [_middle(word) for word in self.words]

    def inside(self, box: Box) -> tuple[Word, ...]:
        left, top, right, bottom = box
        band = self.words[bisect_left(self.middles, 2 * top) : bisect_right(self.middles, 2 * bottom)]
        return tuple(word for word in band if 2 * left <= word.left + word.right <= 2 * right)


def _middle(word: Word) -> float:
    return word.top + word.bottom


def _text(sheet: _Sorted, place: Place) -> str:
    page = sheet.page
    lines = lines_of(Page(page.number, page.width, page.height, page.turn, sheet.inside(place.box)))
    return _plain(" ".join(line.text for line in lines))


def _plain(text: str) -> str:
    """The text without the spaces and commas that join two lines to one value."""
    return "".join(text.replace(",", "").split())
