"""Prints invoices like those for `pt_simon_invoice_v1`, to compare the values that are read with those printed.

The generator was written from a description of the paper, without knowledge of the mapping or the reader, so that both
sides do not share a mistake.
"""

from __future__ import annotations

from support.invoices.generator import make_invoice, make_layout, reference_invoice
from support.invoices.layout import Layout
from support.invoices.layouts import LAYOUTS, varied
from support.invoices.printer import plan, print_invoice
from support.invoices.truth import Invoice, Line, problems

__all__ = [
    "LAYOUTS",
    "Invoice",
    "Layout",
    "Line",
    "make_invoice",
    "make_layout",
    "plan",
    "print_invoice",
    "problems",
    "reference_invoice",
    "varied",
]
