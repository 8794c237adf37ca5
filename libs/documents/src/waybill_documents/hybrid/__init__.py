"""Hybrid invoices: a PDF that carries its own data as an attachment (Factur-X, ZUGFeRD 2, XRechnung).

Such a file is read from the attachment and not from the picture of it. `attachments.py` finds it, `profiles.py`
validates it, `reading.py` turns it into values with their provenance, `checks.py` does the sums that EN 16931
demands, and `ubl.py` writes it in the other syntax of that standard.
"""

from __future__ import annotations

from waybill_documents.hybrid.attachments import (
    EmbeddedInvoice,
    embedded_in,
    parse_invoice,
    required,
)
from waybill_documents.hybrid.checks import check_embedded
from waybill_documents.hybrid.embedded_values import LINE_TYPES, TYPES, extract
from waybill_documents.hybrid.profiles import Profile, to_cii, validate
from waybill_documents.hybrid.ubl import to_ubl

__all__ = [
    "LINE_TYPES",
    "TYPES",
    "EmbeddedInvoice",
    "Profile",
    "check_embedded",
    "embedded_in",
    "extract",
    "parse_invoice",
    "required",
    "to_cii",
    "to_ubl",
    "validate",
]
