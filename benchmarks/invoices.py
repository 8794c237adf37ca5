"""The benchmark's documents: invoices printed for the run, and real ones if they are available."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pypdfium2

from benchmarks.contestants import ROOT

sys.path.append(str(ROOT / "tests"))  # for the tests' generator of invoices

from support.invoices import make_invoice, print_invoice, reference_invoice

MAPPING = "pt_simon_invoice_v1"

VENDORS = {
    "AmazonWebServices": "amazon_web_services_v1",
    "AzureInterior": "azure_interior_v1",
    "FlipkartInvoice": "flipkart_v1",
    "QualityHosting": "quality_hosting_v1",
    "coolblue1": "coolblue_v1",
    "oyo": "oyo_v1",
}
"""Invoices from invoice2data's own tests, and our mapping for each."""


@dataclass(frozen=True)
class Printed:
    file: Path
    lines: int
    pages: int


def printed(home: Path, lines: int) -> Printed:
    """Print the reference invoice with `lines` lines."""
    file = home / f"invoice-{lines}.pdf"
    if not file.exists():
        file.write_bytes(print_invoice(*reference_invoice(lines=lines)))
    document = pypdfium2.PdfDocument(file)
    pages = len(document)
    document.close()
    return Printed(file, lines, pages)


def one_page(seed: int, lines: int) -> bytes:
    """A short invoice, a different one for every seed."""
    return print_invoice(make_invoice(seed, lines), reference_invoice(lines)[1])


def vendors() -> dict[str, Path]:
    """The real invoices. They are beside the repository, not in it, and may be absent."""
    folder = ROOT.parent / "shared" / "data" / "invoices" / "vendors"
    return {name: folder / f"{name}.pdf" for name in VENDORS if (folder / f"{name}.pdf").exists()}
