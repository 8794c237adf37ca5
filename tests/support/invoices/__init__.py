"""Prints invoices as the vendor of `pt_simon_invoice_v1` does, so that what is read back can be held against the truth.

Written from the description of the paper alone, by someone who had seen neither the mapping nor the reader: what both
sides agree on is then the description and not a shared mistake.
"""

from __future__ import annotations

from support.invoices.layout import Layout
from support.invoices.layouts import LAYOUTS, varied
from support.invoices.making import make_invoice, make_layout, reference_invoice
from support.invoices.printing import plan, print_invoice
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
