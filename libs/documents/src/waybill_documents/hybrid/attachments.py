"""Finds the invoice inside a PDF by its name or its content, and parses it as untrusted XML."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import pypdfium2
import pypdfium2.raw
from lxml import etree

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.hybrid.cii import GUIDELINE, ROOT, first, text_of
from waybill_documents.hybrid.profiles import Profile, profile_of
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.xml_output.safe_xml import HostileXml, local, parse

_NAMES = ("factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml", "cross-industry-invoice.xml", "order-x.xml")
"""In lower case. The first three are the names in the standards; ZUGFeRD 1 wrote ZUGFeRD-invoice.xml."""

_MOST_ATTACHMENTS = 100


@dataclass(frozen=True, slots=True)
class EmbeddedInvoice:
    """A Cross Industry Invoice with its guideline and profile."""

    name: str
    xml: bytes
    root: etree._Element
    guideline: str
    profile: Profile


def required(embedded: EmbeddedInvoice | None) -> EmbeddedInvoice:
    """The invoice. Raises DocumentRejected NO_EMBEDDED_INVOICE if there is none."""
    if embedded is None:
        raise DocumentRejected(FaultCode.NO_EMBEDDED_INVOICE, DocumentMessage("embedded.missing"))
    return embedded


def embedded_in(document: pypdfium2.PdfDocument, limits: PdfLimits) -> EmbeddedInvoice | None:
    """The invoice embedded in a PDF, or None when there is none."""
    unnamed = []
    for index in range(min(document.count_attachments(), _MOST_ATTACHMENTS)):
        try:
            attachment = document.get_attachment(index)
            name = attachment.get_name()
        except pypdfium2.PdfiumError:
            continue
        if name.lower() in _NAMES:
            return parse_invoice(name, _content(attachment, name, limits))
        if name.lower().endswith(".xml") or "." not in name:
            unnamed.append((name, attachment))
    for name, attachment in unnamed:
        try:
            content = _content(attachment, name, limits)
        except DocumentRejected:
            continue
        # Look at the beginning, in any encoding. Only a file that claims to be an invoice may raise a fault.
        if b"CrossIndustryInvoice" in content[:65_536].replace(b"\0", b""):
            return parse_invoice(name, content)
    return None


def parse_invoice(name: str, xml: bytes) -> EmbeddedInvoice:
    """The invoice in an attachment. Raises DocumentRejected if we cannot read it."""
    try:
        root = parse(xml)
    except HostileXml as hostile:
        raise DocumentRejected(
            FaultCode.UNREADABLE, DocumentMessage("embedded.refused", name=name, why=hostile.says)
        ) from None
    except etree.XMLSyntaxError as broken:
        raise DocumentRejected(
            FaultCode.UNREADABLE, DocumentMessage("embedded.not_xml", name=name, detail=str(broken))
        ) from None
    if root.tag != ROOT:
        raise DocumentRejected(FaultCode.UNSUPPORTED_CONSTRUCT, _another_format(name, root))
    guideline = text_of(first(root, GUIDELINE))
    return EmbeddedInvoice(name, xml, root, guideline, profile_of(guideline))


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


def _another_format(name: str, root: etree._Element) -> DocumentMessage:
    kind = local(str(root.tag))
    if kind == "CrossIndustryDocument":
        return DocumentMessage("embedded.zugferd_1", name=name)
    if kind == "SCRDMCCBDACIOMessageStructure":
        return DocumentMessage("embedded.order", name=name)
    return DocumentMessage("embedded.other_format", name=name, element=kind)
