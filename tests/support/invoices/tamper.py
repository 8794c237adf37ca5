"""Invoices with exactly one thing wrong, for tests of what must be refused.

Everything else still adds up: if a line is changed or removed, the totals follow, so that only the check for this fault
notices it.
"""

from __future__ import annotations

import dataclasses
from decimal import Decimal

from support.invoices.layout import Layout
from support.invoices.printer import CarryError, print_invoice
from support.invoices.truth import Invoice, Line, settle

THOUSAND = Decimal(1000)


def wrong_amount(invoice: Invoice, no: int, *, off: Decimal = THOUSAND) -> Invoice:
    """The amount of line `no` is not quantity times price less discount."""
    line = _line(invoice, no)
    return _with(invoice, no, dataclasses.replace(line, amount=line.amount + off))


def missing_line(invoice: Invoice, no: int) -> Invoice:
    """Line `no` is missing from the running numbers. Choose a line that others follow, or the gap is invisible."""
    _line(invoice, no)
    return settle(dataclasses.replace(invoice, lines=tuple(line for line in invoice.lines if line.no != no)))


def wrong_subtotal(invoice: Invoice, *, off: Decimal = THOUSAND) -> Invoice:
    """Only the subtotal is wrong; tax and total are those of the lines."""
    return dataclasses.replace(invoice, subtotal=invoice.subtotal + off)


def unknown_unit(invoice: Invoice, no: int, *, unit: str = "pikul") -> Invoice:
    return _with(invoice, no, dataclasses.replace(_line(invoice, no), unit=unit))


def without_buyer_npwp(invoice: Invoice, *, printed: str = "") -> Invoice:
    """The buyer's tax number is left out with its label, or replaced by a text such as `-`."""
    return dataclasses.replace(invoice, buyer_npwp=printed)


def wrong_carry_over(
    invoice: Invoice,
    layout: Layout,
    *,
    page: int = 1,
    carried: Decimal = THOUSAND,
    brought: Decimal = THOUSAND,
) -> bytes:
    """The sums carried out of `page` and into the next one are wrong by these amounts; either can be 0."""
    return print_invoice(invoice, layout, carry_error=CarryError(page, carried=carried, brought=brought))


def _line(invoice: Invoice, no: int) -> Line:
    return next(line for line in invoice.lines if line.no == no)


def _with(invoice: Invoice, no: int, changed: Line) -> Invoice:
    return settle(
        dataclasses.replace(invoice, lines=tuple(changed if line.no == no else line for line in invoice.lines))
    )
