"""An e-invoice as it was found: its bytes, its syntax, its profile and what it says."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from lxml import etree

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.hybrid import zugferd_1
from waybill_documents.hybrid.en16931 import Detail, Read, Syntax, read
from waybill_documents.hybrid.en16931.syntaxes import qualified, syntax_of, text_of
from waybill_documents.hybrid.profiles import Profile, profile_of
from waybill_documents.messages import DocumentMessage
from waybill_documents.xml_output.safe_xml import HostileXml, local, parse

_GUIDELINE = {
    Syntax.CII: (
        "rsm:ExchangedDocumentContext",
        "ram:GuidelineSpecifiedDocumentContextParameter",
        "ram:ID",
    ),
    Syntax.UBL: ("cbc:CustomizationID",),
}


@dataclass(frozen=True)
class EmbeddedInvoice:
    """A Cross Industry Invoice or a UBL document with its guideline and profile."""

    name: str
    xml: bytes
    root: etree._Element
    syntax: Syntax
    guideline: str
    profile: Profile
    from_zugferd_1: tuple[Detail, ...] | None = None
    """For an invoice of ZUGFeRD 1, what was taken out to make `root` of it. None for all others."""

    @functools.cached_property
    def read(self) -> Read:
        """The invoice as business terms of EN 16931, and what has no place among them."""
        found = read(self.root, self.syntax)
        return replace(found, fillers=(*found.fillers, *(self.from_zugferd_1 or ())))


def parse_invoice(name: str, xml: bytes) -> EmbeddedInvoice:
    """The invoice in an XML document of either syntax. Raises DocumentRejected if we cannot read it.

    The name is that of the attachment; it is empty for a document that is no part of a PDF.
    """
    try:
        root = parse(xml)
    except HostileXml as hostile:
        raise DocumentRejected(
            FaultCode.UNREADABLE, DocumentMessage("embedded.refused", name=name or None, why=hostile.says)
        ) from None
    except etree.XMLSyntaxError as broken:
        raise DocumentRejected(
            FaultCode.UNREADABLE, DocumentMessage("embedded.not_xml", name=name or None, detail=str(broken))
        ) from None
    if root.tag == zugferd_1.ROOT:
        made, taken = zugferd_1.as_cii(root)
        return EmbeddedInvoice(name, xml, made, Syntax.CII, zugferd_1.GUIDELINE, Profile.EN16931, taken)
    syntax = syntax_of(root)
    if syntax is None:
        raise DocumentRejected(FaultCode.UNSUPPORTED_CONSTRUCT, _another_format(name, root))
    guideline = _guideline(root, syntax)
    return EmbeddedInvoice(name, xml, root, syntax, guideline, profile_of(guideline))


def _guideline(root: etree._Element, syntax: Syntax) -> str:
    element: etree._Element | None = root
    for tag in _GUIDELINE[syntax]:
        element = next(element.iterchildren(qualified(tag)), None) if element is not None else None
    return text_of(element)


def _another_format(name: str, root: etree._Element) -> DocumentMessage:
    kind = local(str(root.tag))
    if kind == "SCRDMCCBDACIOMessageStructure":
        return DocumentMessage("embedded.order", name=name or None)
    return DocumentMessage("embedded.other_format", name=name or None, element=kind)
