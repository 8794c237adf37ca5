"""Records of documents as they are stored, after a round trip through JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.invoices import Invoice, Layout, print_invoice
from support.pages import extract_pages
from waybill_documents.document_reader import read_pdf
from waybill_documents.geometry import Page
from waybill_documents.mapping.loader import LoadedMapping, parse, shipped
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.provenance import pages_of
from waybill_documents.reading import Reading, judged
from waybill_documents.stages import Stages

Record = dict[str, Any]


def pt_simon_loaded() -> LoadedMapping:
    loaded = shipped("pt_simon_invoice_v1")
    assert loaded is not None
    return loaded


def read_invoice(invoice: Invoice, layout: Layout, folder: Path) -> Reading:
    """Print the invoice and read it."""
    path = folder / "invoice.pdf"
    path.write_bytes(print_invoice(invoice, layout))
    return read_pdf(path, pt_simon_loaded(), PdfLimits(), Stages(lambda: 0.0))


def read_page(mapping: dict[str, Any], *pages: Page) -> Reading:
    """Read pages that are made of words with a mapping of the test."""
    loaded = LoadedMapping(parse(json.dumps(mapping).encode()), "0" * 64, None)
    extraction = extract_pages(loaded.mapping, *pages)
    source = {"kind": "pdf", "pages": pages_of(extraction.pages)}
    return judged(loaded, extraction, source, Stages(lambda: 0.0))


def record_of(reading: Reading) -> Record:
    made: Record = json.loads(json.dumps(reading.to_json()))
    return made
