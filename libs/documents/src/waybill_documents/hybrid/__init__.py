"""Hybrid invoices: a PDF that carries its own data as an attachment (Factur-X, ZUGFeRD 2, XRechnung).

Such a file is read from the attachment and not from the printed page. `attachments.py` finds it, `profiles.py`
validates it, `embedded_values.py` turns it into values with their provenance, `en16931_sums.py` checks the sums that
EN 16931 requires, and `ubl` writes it in the other syntax of that standard.
"""

from __future__ import annotations

from waybill_documents.hybrid.attachments import (
    EmbeddedInvoice,
    embedded_in,
    parse_invoice,
    required,
)
from waybill_documents.hybrid.embedded_values import LINE_TYPES, TYPES, accounts_of, extract
from waybill_documents.hybrid.en16931_sums import check_embedded
from waybill_documents.hybrid.profiles import Profile, to_cii, validate
from waybill_documents.hybrid.ubl import to_ubl

__all__ = [
    "LINE_TYPES",
    "TYPES",
    "EmbeddedInvoice",
    "Profile",
    "accounts_of",
    "check_embedded",
    "embedded_in",
    "extract",
    "parse_invoice",
    "required",
    "to_cii",
    "to_ubl",
    "validate",
]
