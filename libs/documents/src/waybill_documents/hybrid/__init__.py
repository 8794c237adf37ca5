"""E-invoices: XML by EN 16931, usually inside a hybrid PDF (Factur-X, ZUGFeRD 2, XRechnung).

Such an invoice is read from its XML and not from the printed page. `attachments.py` finds it in a PDF, and
`embedded_invoice.py` parses it in either syntax of the standard, Cross Industry Invoice or UBL. `validity.py` validates
it, `en16931` turns it into the business terms of the standard and back, `embedded_values.py` has its values with their
provenance, `en16931_sums.py` checks the sums that the standard requires, and `syntax_conversion.py` writes it in the
syntax that was asked for.
"""

from __future__ import annotations

from waybill_documents.hybrid.attachments import embedded_in, has_standard_name, required
from waybill_documents.hybrid.embedded_invoice import EmbeddedInvoice, parse_invoice
from waybill_documents.hybrid.embedded_values import LINE_TYPES, TYPES, accounts_of, extract
from waybill_documents.hybrid.en16931 import Syntax
from waybill_documents.hybrid.en16931_sums import check_embedded
from waybill_documents.hybrid.profiles import Profile
from waybill_documents.hybrid.syntax_conversion import Converted, Loss, convert
from waybill_documents.hybrid.validity import validate

__all__ = [
    "LINE_TYPES",
    "TYPES",
    "Converted",
    "EmbeddedInvoice",
    "Loss",
    "Profile",
    "Syntax",
    "accounts_of",
    "check_embedded",
    "convert",
    "embedded_in",
    "extract",
    "has_standard_name",
    "parse_invoice",
    "required",
    "validate",
]
