"""Converts a Cross Industry Invoice to UBL 2.1, by the tables of this folder.

The tables follow the two syntax bindings of EN 16931 (CEN/TS 16931-3-2 for UBL, 3-3 for CII); BT and BG are that
standard's numbers of business terms and groups. The conversion records every element and attribute that a table uses.
A value that was not used has no place in the core of the standard, and the invoice is refused with the name of that
element: an invoice that lost something in conversion is worse than none.
"""

from __future__ import annotations

from lxml import etree

from waybill_documents.faults import DocumentRejected, FaultCode, Finding
from waybill_documents.hybrid.attachments import EmbeddedInvoice
from waybill_documents.hybrid.cii import DOCUMENT, LINES, SETTLEMENT, first, path_of, text_of
from waybill_documents.hybrid.profiles import validate
from waybill_documents.hybrid.ubl.head import CREDIT_NOTE_HEAD, INVOICE_HEAD
from waybill_documents.hybrid.ubl.invoice_lines import CREDIT_NOTE_LINES, INVOICE_LINES
from waybill_documents.hybrid.ubl.money import PAYMENT, TOTALS
from waybill_documents.hybrid.ubl.parties import PARTIES
from waybill_documents.hybrid.ubl.parts import NAMESPACES, Part, UblConversion
from waybill_documents.messages import DocumentMessage
from waybill_documents.xml_output.validation import MOST_FINDINGS, and_more
from waybill_documents.xml_output.value_spelling import DECLARATION

_DOCUMENT_NAMESPACE = "urn:oasis:names:specification:ubl:schema:xsd:{}-2"

_CREDIT_NOTES = frozenset({"81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "532"})
"""The document types (UNTDID 1001) that EN 16931 writes as a UBL CreditNote; all others are an Invoice."""

_INVOICE: tuple[Part, ...] = (*INVOICE_HEAD, *PARTIES, *PAYMENT, *TOTALS, INVOICE_LINES)
_CREDIT_NOTE: tuple[Part, ...] = (*CREDIT_NOTE_HEAD, *PARTIES, *PAYMENT, *TOTALS, CREDIT_NOTE_LINES)


def to_ubl(embedded: EmbeddedInvoice, *, pretty: bool = False) -> bytes:
    """The invoice as a UBL 2.1 Invoice or CreditNote, in UTF-8.

    Raises DocumentRejected INVALID_XML when the source does not fit its schema, and UNSUPPORTED_CONSTRUCT for
    everything in it that has no place in the core of EN 16931.
    """
    validate(embedded)
    root = embedded.root
    if first(root, LINES) is None:
        message = DocumentMessage("embedded.no_lines", profile=embedded.profile.name)
        raise DocumentRejected(FaultCode.UNSUPPORTED_CONSTRUCT, message)
    conversion = UblConversion(
        root,
        currency=text_of(first(root, f"{SETTLEMENT}/ram:InvoiceCurrencyCode")),
        credit_note=text_of(first(root, f"{DOCUMENT}/ram:TypeCode")) in _CREDIT_NOTES,
    )
    kind = "CreditNote" if conversion.credit_note else "Invoice"
    namespace = _DOCUMENT_NAMESPACE.format(kind)
    # The stubs do not know that None stands for the default namespace.
    result = etree.Element(f"{{{namespace}}}{kind}", nsmap={None: namespace, **NAMESPACES})  # type: ignore[dict-item]
    for part in _CREDIT_NOTE if conversion.credit_note else _INVOICE:
        result.extend(part(conversion, root))
    _nothing_left(conversion)
    if pretty:
        etree.indent(result)
    return DECLARATION.encode() + etree.tostring(result, encoding="UTF-8", xml_declaration=False) + b"\n"


def _nothing_left(conversion: UblConversion) -> None:
    left = list(conversion.left_over())
    if not left:
        return
    findings = []
    for element, attribute, value in left[:MOST_FINDINGS]:
        path = path_of(element) + (f"/@{attribute}" if attribute else "")
        message = DocumentMessage("embedded.no_place_in_ubl", element=path, value=_short(value))
        findings.append(Finding(FaultCode.UNSUPPORTED_CONSTRUCT, message, rule="en16931_ubl"))
    more = and_more(findings, len(left) - len(findings))
    raise DocumentRejected(FaultCode.UNSUPPORTED_CONSTRUCT, DocumentMessage("embedded.beyond_ubl"), more)


def _short(value: str) -> str:
    return value if len(value) <= 80 else value[:79] + "…"
