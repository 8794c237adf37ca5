"""`/`: the sample that people can try."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE

PAGES = Path(str(files("waybill_convert.pages")))


def test_the_sample_is_our_own_invoice() -> None:
    printed = print_invoice(make_invoice(2025, 8, whole=True), REFERENCE)
    assert (PAGES / "sample" / "sample-invoice.pdf").read_bytes() == printed
