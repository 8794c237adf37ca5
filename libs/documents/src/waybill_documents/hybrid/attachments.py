"""Finds the invoice inside a PDF by its name or its content."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pypdfium2
import pypdfium2.raw

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.hybrid.embedded_invoice import EmbeddedInvoice, parse_invoice
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.embedded_files import name_of
from waybill_documents.pdf.pdf_limits import PdfLimits

_NAMES = (
    "factur-x.xml",
    "xrechnung.xml",
    "zugferd-invoice.xml",
    "cross-industry-invoice.xml",
    "order-x.xml",
)
"""The names of the standards in lower case, the newest first: a file may carry an older edition beside it."""

_ROOTS = (b"CrossIndustryInvoice", b"CrossIndustryDocument", b"oasis:names:specification:ubl:schema:xsd:")

_MOST_NAMES = 10_000
_MOST_LOOKED_INTO = 100
"""How many attachments with other names are opened."""


def required(embedded: EmbeddedInvoice | None) -> EmbeddedInvoice:
    """The invoice. Raises DocumentRejected NO_EMBEDDED_INVOICE if there is none."""
    if embedded is None:
        raise DocumentRejected(FaultCode.NO_EMBEDDED_INVOICE, DocumentMessage("embedded.missing"))
    return embedded


def has_standard_name(embedded: EmbeddedInvoice) -> bool:
    """Whether an attachment is called as one of the standards for hybrid invoices says."""
    return embedded.name.lower() in _NAMES


def embedded_in(document: pypdfium2.PdfDocument, limits: PdfLimits) -> EmbeddedInvoice | None:
    """The invoice embedded in a PDF, or None when there is none.

    Raises DocumentRejected TOO_MUCH_TEXT if there are too many attachments to say that.
    """
    named: dict[str, tuple[str, Any]] = {}
    others = []
    for name, attachment in _attachments(document):
        known = name.lower()
        if known in _NAMES:
            named.setdefault(known, (name, attachment))
        elif known.endswith(".xml") or "." not in known:
            others.append((name, attachment))
    for known in _NAMES:
        if known in named:
            name, attachment = named[known]
            return parse_invoice(name, _content(attachment, name, limits))
    for name, attachment in others[:_MOST_LOOKED_INTO]:
        try:
            content = _content(attachment, name, limits)
        except DocumentRejected:
            continue
        # Look at the beginning, in any encoding. Only a file that claims to be an invoice may raise a fault.
        beginning = content[:65_536].replace(b"\0", b"")
        if any(root in beginning for root in _ROOTS):
            return parse_invoice(name, content)
    if len(others) > _MOST_LOOKED_INTO or document.count_attachments() > _MOST_NAMES:
        message = DocumentMessage("embedded.too_many", count=document.count_attachments(), most=_MOST_LOOKED_INTO)
        raise DocumentRejected(FaultCode.TOO_MUCH_TEXT, message)
    return None


def _attachments(document: pypdfium2.PdfDocument) -> Iterator[tuple[str, Any]]:
    for index in range(min(document.count_attachments(), _MOST_NAMES)):
        try:
            attachment = document.get_attachment(index)
            yield name_of(attachment), attachment
        except pypdfium2.PdfiumError:
            continue


def _content(attachment: Any, name: str, limits: PdfLimits) -> bytes:
    # pypdfium2 allocates whatever size the file claims, so we check the size first.
    size = ctypes.c_ulong()
    pypdfium2.raw.FPDFAttachment_GetFile(attachment, None, 0, size)
    if size.value > limits.attachment_bytes:
        message = DocumentMessage("embedded.too_large", name=name, bytes=size.value, most=limits.attachment_bytes)
        raise DocumentRejected(FaultCode.TOO_MUCH_TEXT, message)
    try:
        return bytes(attachment.get_data())
    except pypdfium2.PdfiumError:
        raise DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("embedded.damaged", name=name)) from None
