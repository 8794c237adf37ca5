"""Records as they are kept: what was read from a document, after a way through JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.invoices import Invoice, Layout, print_invoice
from support.pages import extract_pages
from waybill_documents.conversion import Reading, judged, read_pdf
from waybill_documents.limits import Limits
from waybill_documents.mapping.loader import LoadedMapping, parse, shipped
from waybill_documents.provenance import pages_of
from waybill_documents.stages import Stages
from waybill_documents.words import Page

Record = dict[str, Any]


def pt_simon_loaded() -> LoadedMapping:
    loaded = shipped("pt_simon_invoice_v1")
    assert loaded is not None
    return loaded


def read_invoice(invoice: Invoice, layout: Layout, folder: Path) -> Reading:
    """What is read from the invoice when it is printed."""
    path = folder / "invoice.pdf"
    path.write_bytes(print_invoice(invoice, layout))
    return read_pdf(path, pt_simon_loaded(), Limits(), Stages(lambda: 0.0))


def read_page(mapping: dict[str, Any], *pages: Page) -> Reading:
    """What a mapping of a test reads from pages that are made of words."""
    loaded = LoadedMapping(parse(json.dumps(mapping).encode()), "0" * 64, None)
    extraction = extract_pages(loaded.mapping, *pages)
    source = {"kind": "pdf", "pages": pages_of(extraction.pages)}
    return judged(loaded, extraction, source, Stages(lambda: 0.0))


def record_of(reading: Reading) -> Record:
    made: Record = json.loads(json.dumps(reading.to_json()))
    return made
