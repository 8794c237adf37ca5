"""Turns a ZUGFeRD 1 invoice into the Cross Industry Invoice that came after it.

The two are relatives: most elements have only other names. What the core of EN 16931 never had is taken out if it says
nothing that is not said elsewhere, and listed, so that it cannot get lost unseen. Everything else without a place is
left where it is, and is then a detail that the conversion refuses.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from waybill_documents.hybrid.en16931 import Detail
from waybill_documents.hybrid.en16931.syntaxes import NAMESPACES, path_of, qualified, text_of
from waybill_documents.xml_output.safe_xml import local

ROOT = "{urn:ferd:CrossIndustryDocument:invoice:1p0}CrossIndustryDocument"
GUIDELINE = "urn:cen.eu:en16931:2017"
"""The standard that the result follows."""

_NAMESPACES = {
    "urn:ferd:CrossIndustryDocument:invoice:1p0": "rsm",
    "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:12": "ram",
    "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:15": "udt",
    "urn:un:unece:uncefact:data:standard:QualifiedDataType:12": "qdt",
}
_NAMES = {
    "CrossIndustryDocument": "CrossIndustryInvoice",
    "SpecifiedExchangedDocumentContext": "ExchangedDocumentContext",
    "HeaderExchangedDocument": "ExchangedDocument",
    "SpecifiedSupplyChainTradeTransaction": "SupplyChainTradeTransaction",
    "ApplicableSupplyChainTradeAgreement": "ApplicableHeaderTradeAgreement",
    "ApplicableSupplyChainTradeDelivery": "ApplicableHeaderTradeDelivery",
    "ApplicableSupplyChainTradeSettlement": "ApplicableHeaderTradeSettlement",
    "SpecifiedSupplyChainTradeAgreement": "SpecifiedLineTradeAgreement",
    "SpecifiedSupplyChainTradeDelivery": "SpecifiedLineTradeDelivery",
    "SpecifiedSupplyChainTradeSettlement": "SpecifiedLineTradeSettlement",
    "ApplicablePercent": "RateApplicablePercent",
    "DeliveryNoteReferencedDocument": "DespatchAdviceReferencedDocument",
    "SpecifiedLogisticsServiceCharge": "SpecifiedTradeAllowanceCharge",
    "AppliedAmount": "ActualAmount",
    "AppliedTradeTax": "CategoryTradeTax",
}
_SUMS = "SpecifiedTradeSettlementMonetarySummation"
_LOGISTICS = "SpecifiedLogisticsServiceCharge"
_LINE = "IncludedSupplyChainTradeLineItem"


def as_cii(root: etree._Element) -> tuple[etree._Element, tuple[Detail, ...]]:
    """The same invoice as Cross Industry Invoice, and what was taken out."""
    taken: list[Detail] = []
    made = _copied(root, taken, None)
    context = _child(made, "rsm:ExchangedDocumentContext")
    guideline = _child(_child(context, "ram:GuidelineSpecifiedDocumentContextParameter"), "ram:ID")
    if guideline is not None:
        guideline.text = GUIDELINE
    _move_notes(made)
    _number_lines(made)
    return made, tuple(taken)


def _copied(element: etree._Element, taken: list[Detail], parent: etree._Element | None) -> etree._Element:
    tag = _tag(element)
    attributes = {str(name): str(value) for name, value in element.attrib.items()}
    if parent is None:
        copy = etree.Element(tag, attributes, {prefix: NAMESPACES[prefix] for prefix in ("rsm", "ram", "qdt", "udt")})
    else:
        copy = etree.SubElement(parent, tag, attributes)
    copy.text = element.text
    if local(str(element.tag)) == _LOGISTICS:
        etree.SubElement(
            etree.SubElement(copy, qualified("ram:ChargeIndicator")), qualified("udt:Indicator")
        ).text = "true"
    for child in element.iterchildren("*"):
        if _says_nothing(child):
            continue
        if _is_beyond_the_core(child):
            taken.extend(_details(child))
        else:
            _copied(child, taken, copy)
    return copy


def _tag(element: etree._Element) -> str:
    name = etree.QName(element)
    prefix = _NAMESPACES.get(name.namespace or "")
    if prefix is None:
        return str(element.tag)
    parent = element.getparent()
    above = local(str(parent.tag)) if parent is not None else ""
    new = _NAMES.get(name.localname, name.localname)
    if name.localname == "ID" and above.endswith("ReferencedDocument"):
        new = "IssuerAssignedID"
    elif name.localname == "Description" and above == _LOGISTICS:
        new = "Reason"
    elif name.localname == _SUMS:
        kind = "Header" if above == "ApplicableSupplyChainTradeSettlement" else "Line"
        new = f"SpecifiedTradeSettlement{kind}MonetarySummation"
    return qualified(f"{prefix}:{new}")


def _says_nothing(element: etree._Element) -> bool:
    """Whether it repeats what is said elsewhere: the type as a word, or that this is no test."""
    name, parent = local(str(element.tag)), element.getparent()
    above = local(str(parent.tag)) if parent is not None else ""
    if name == "Name" and above == "HeaderExchangedDocument":
        return True
    return name == "TestIndicator" and text_of(next(element.iter("{*}Indicator"), None)) in {"false", "0"}


def _is_beyond_the_core(element: etree._Element) -> bool:
    """Whether it can be taken out without a change to what is owed, to whom, and for what."""
    name, parent = local(str(element.tag)), element.getparent()
    above = local(str(parent.tag)) if parent is not None else ""
    if name == "IssueDateTime":
        return above.endswith("ReferencedDocument")
    if name in {"ProprietaryID", "GermanBankleitzahlID"} or (name == "Name" and above.endswith("FinancialInstitution")):
        return _has_iban(element)  # the IBAN has them in it
    return name == "Reason" and above == "AppliedTradeAllowanceCharge"


def _has_iban(element: etree._Element) -> bool:
    means = next((each for each in element.iterancestors() if local(str(each.tag)).endswith("PaymentMeans")), None)
    return means is not None and any(text_of(each) for each in means.iter("{*}IBANID"))


def _details(element: etree._Element) -> Iterator[Detail]:
    for each in element.iter("*"):
        if text := text_of(each):
            yield Detail(path_of(each), text)


def _move_notes(root: etree._Element) -> None:
    """A line without a product is a remark between the lines, which the core has only for the whole document."""
    document = _child(root, "rsm:ExchangedDocument")
    transaction = _child(root, "rsm:SupplyChainTradeTransaction")
    if document is None or transaction is None:
        return
    for line in list(transaction.iterchildren(qualified(f"ram:{_LINE}"))):
        if _child(line, "ram:SpecifiedTradeProduct") is None and _child(line, "ram:SpecifiedLineTradeDelivery") is None:
            for note in list(line.iter(qualified("ram:IncludedNote"))):
                document.append(note)
            if not any(text_of(each) for each in line.iter("*")):
                transaction.remove(line)


def _number_lines(root: etree._Element) -> None:
    """Lines may have no number, which the standard requires. Their position is what a reader would count."""
    transaction = _child(root, "rsm:SupplyChainTradeTransaction")
    lines = transaction.iterchildren(qualified(f"ram:{_LINE}")) if transaction is not None else ()
    for position, line in enumerate(lines, start=1):
        document = _child(line, "ram:AssociatedDocumentLineDocument")
        if document is None:
            document = etree.SubElement(line, qualified("ram:AssociatedDocumentLineDocument"))
        if _child(document, "ram:LineID") is None:
            etree.SubElement(document, qualified("ram:LineID")).text = str(position)


def _child(element: etree._Element | None, tag: str) -> etree._Element | None:
    return next(element.iterchildren(qualified(tag)), None) if element is not None else None
