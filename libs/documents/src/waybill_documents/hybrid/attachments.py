"""The invoice inside the PDF: found by its name or, in doubt, by its content, and parsed as a stranger's XML."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import pypdfium2
import pypdfium2.raw
from lxml import etree

from waybill_documents.faults import DocumentFault, FaultCode
from waybill_documents.hybrid.cii import GUIDELINE, ROOT, first, text_of
from waybill_documents.hybrid.profiles import Profile, profile_of
from waybill_documents.limits import Limits
from waybill_documents.xml_output.parser import HostileXml, local, parse

_NAMES = ("factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml", "cross-industry-invoice.xml", "order-x.xml")
"""Lower case. The first three are the standards' own; ZUGFeRD 1 wrote ZUGFeRD-invoice.xml."""

_MOST_ATTACHMENTS = 100


@dataclass(frozen=True, slots=True)
class EmbeddedInvoice:
    """A Cross Industry Invoice and what it says it is."""

    name: str
    xml: bytes
    root: etree._Element
    guideline: str
    profile: Profile


def required(embedded: EmbeddedInvoice | None) -> EmbeddedInvoice:
    """The invoice, for a mapping that cannot do without; raises DocumentFault NO_EMBEDDED_INVOICE."""
    if embedded is None:
        message = (
            "The PDF has no embedded invoice (Factur-X, ZUGFeRD or XRechnung), which is what this mapping reads."
            " Choose a mapping that reads the printed page."
        )
        raise DocumentFault(FaultCode.NO_EMBEDDED_INVOICE, message)
    return embedded


def embedded_in(document: pypdfium2.PdfDocument, limits: Limits) -> EmbeddedInvoice | None:
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
        except DocumentFault:
            continue
        # The beginning tells, in any encoding; only what claims to be an invoice is worth a fault.
        if b"CrossIndustryInvoice" in content[:65_536].replace(b"\0", b""):
            return parse_invoice(name, content)
    return None


def parse_invoice(name: str, xml: bytes) -> EmbeddedInvoice:
    """The invoice in an attachment; raises DocumentFault when it is not one that we can read."""
    try:
        root = parse(xml)
    except HostileXml as hostile:
        raise DocumentFault(FaultCode.UNREADABLE, f"The attachment {name} is refused: {hostile}.") from None
    except etree.XMLSyntaxError as broken:
        raise DocumentFault(FaultCode.UNREADABLE, f"The attachment {name} is not XML: {broken}.") from None
    if root.tag != ROOT:
        raise DocumentFault(FaultCode.UNSUPPORTED_CONSTRUCT, _another_format(name, root))
    guideline = text_of(first(root, GUIDELINE))
    return EmbeddedInvoice(name, xml, root, guideline, profile_of(guideline))


def _content(attachment: Any, name: str, limits: Limits) -> bytes:
    # The helper of pypdfium2 allocates whatever the file says; the size is asked for first.
    size = ctypes.c_ulong()
    pypdfium2.raw.FPDFAttachment_GetFile(attachment, None, 0, size)
    if size.value > limits.attachment_bytes:
        message = f"The attachment {name} has {size.value:,} bytes; at most {limits.attachment_bytes:,} are read."
        raise DocumentFault(FaultCode.TOO_MUCH_TEXT, message)
    try:
        return bytes(attachment.get_data())
    except pypdfium2.PdfiumError:
        raise DocumentFault(FaultCode.UNREADABLE, f"The attachment {name} is damaged.") from None


def _another_format(name: str, root: etree._Element) -> str:
    kind = local(str(root.tag))
    if kind == "CrossIndustryDocument":
        return f"The attachment {name} is a ZUGFeRD 1 invoice; only version 2 and Factur-X are understood."
    if kind == "SCRDMCCBDACIOMessageStructure":
        return f"The attachment {name} is an order (Order-X) and not an invoice."
    return f"The attachment {name} is a <{kind}> and not a Cross Industry Invoice."
