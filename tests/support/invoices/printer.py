"""Prints an invoice as a PDF: plans the pages, then draws them. The same input gives the same bytes."""

from __future__ import annotations

import dataclasses
import io
from dataclasses import dataclass
from decimal import Decimal

from reportlab.pdfgen.canvas import Canvas

from support.invoices.blocks import closing, head, short_head
from support.invoices.flow import Page, Room, paginate, row_height
from support.invoices.layout import Layout
from support.invoices.sheet import Sheet
from support.invoices.table import heading_height, table
from support.invoices.truth import ZERO, Invoice


@dataclass(frozen=True)
class CarryError:
    """The error in the printed sum carried from `page` (counted from 1) to the next page."""

    page: int
    carried: Decimal = ZERO
    brought: Decimal = ZERO


def plan(invoice: Invoice, layout: Layout) -> tuple[Page, ...]:
    """The plan of the pages, for tests of page breaks and carried sums."""
    blank = Sheet(layout)
    first = head(blank, invoice, 1, 999)
    later = first if layout.head_on_every_page else short_head(blank, 999, 999)
    carry = row_height(layout)
    used = heading_height(layout)
    # Measured on a separate page, where there is enough space.
    below = closing(Sheet(dataclasses.replace(layout, page=(layout.page[0], 10_000.0))), invoice, 0.0)
    room = Room(layout.bottom - first - used, layout.bottom - later - used - carry, below, carry)
    return paginate(invoice, layout, room)


def print_invoice(invoice: Invoice, layout: Layout, *, carry_error: CarryError | None = None) -> bytes:
    pages = plan(invoice, layout)
    if carry_error is not None:
        pages = _with_error(pages, carry_error)
    file = io.BytesIO()
    canvas = Canvas(file, pageCompression=1, invariant=1)
    canvas.setTitle(f"Invoice {invoice.number}")
    for number, page in enumerate(pages, start=1):
        sheet = Sheet(layout)
        if number == 1 or layout.head_on_every_page:
            y = head(sheet, invoice, number, len(pages))
        else:
            y = short_head(sheet, number, len(pages))
        y = table(sheet, page, y)
        if page.carried is None:
            closing(sheet, invoice, y)
        sheet.write(canvas)
    canvas.save()
    return file.getvalue()


def _with_error(pages: tuple[Page, ...], error: CarryError) -> tuple[Page, ...]:
    if not 1 <= error.page < len(pages):
        raise ValueError(f"nothing is carried over from page {error.page} of {len(pages)}")
    changed = list(pages)
    before, after = pages[error.page - 1], pages[error.page]
    assert before.carried is not None
    assert after.brought is not None
    changed[error.page - 1] = dataclasses.replace(before, carried=before.carried + error.carried)
    changed[error.page] = dataclasses.replace(after, brought=after.brought + error.brought)
    return tuple(changed)
