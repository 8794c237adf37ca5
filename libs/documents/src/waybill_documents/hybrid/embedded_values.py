"""The values of an embedded invoice. Their provenance is a path in the attachment instead of a place on a page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Literal, NamedTuple

from lxml import etree

from waybill_documents.faults import DocumentRejected, FaultCode, Finding
from waybill_documents.hybrid.attachments import EmbeddedInvoice
from waybill_documents.hybrid.cii import (
    AGREEMENT,
    DOCUMENT,
    LINES,
    SETTLEMENT,
    SUMMATION,
    all_of,
    decimal_of,
    first,
    path_of,
    text_of,
)
from waybill_documents.messages import DocumentMessage
from waybill_documents.values import Extracted, Row, Scalar, Value


def _text(text: str) -> str:
    return text


def _date(text: str) -> date:
    # Format 102 of UN/EDIFACT 2379, the only one that EN 16931 allows.
    return datetime.strptime(text, "%Y%m%d").date()  # noqa: DTZ007 - a day has no time zone


class _Of(NamedTuple):
    """The path of a value, and how to read it."""

    path: str
    read: Callable[[str], Scalar] = _text


_PARTY_TAX_ID = "ram:SpecifiedTaxRegistration/ram:ID[@schemeID='{}']"

FIELDS = {
    "number": _Of(f"{DOCUMENT}/ram:ID"),
    "type_code": _Of(f"{DOCUMENT}/ram:TypeCode"),
    "issue_date": _Of(f"{DOCUMENT}/ram:IssueDateTime/udt:DateTimeString", _date),
    "due_date": _Of(f"{SETTLEMENT}/ram:SpecifiedTradePaymentTerms/ram:DueDateDateTime/udt:DateTimeString", _date),
    "currency": _Of(f"{SETTLEMENT}/ram:InvoiceCurrencyCode"),
    "buyer_reference": _Of(f"{AGREEMENT}/ram:BuyerReference"),
    "order_reference": _Of(f"{AGREEMENT}/ram:BuyerOrderReferencedDocument/ram:IssuerAssignedID"),
    "seller_name": _Of(f"{AGREEMENT}/ram:SellerTradeParty/ram:Name"),
    "seller_vat_id": _Of(f"{AGREEMENT}/ram:SellerTradeParty/{_PARTY_TAX_ID.format('VA')}"),
    "seller_tax_number": _Of(f"{AGREEMENT}/ram:SellerTradeParty/{_PARTY_TAX_ID.format('FC')}"),
    "buyer_name": _Of(f"{AGREEMENT}/ram:BuyerTradeParty/ram:Name"),
    "buyer_vat_id": _Of(f"{AGREEMENT}/ram:BuyerTradeParty/{_PARTY_TAX_ID.format('VA')}"),
    "line_total": _Of(f"{SUMMATION}/ram:LineTotalAmount", decimal_of),
    "allowances": _Of(f"{SUMMATION}/ram:AllowanceTotalAmount", decimal_of),
    "charges": _Of(f"{SUMMATION}/ram:ChargeTotalAmount", decimal_of),
    "net": _Of(f"{SUMMATION}/ram:TaxBasisTotalAmount", decimal_of),
    "tax": _Of(f"{SUMMATION}/ram:TaxTotalAmount", decimal_of),
    "gross": _Of(f"{SUMMATION}/ram:GrandTotalAmount", decimal_of),
    "prepaid": _Of(f"{SUMMATION}/ram:TotalPrepaidAmount", decimal_of),
    "rounding": _Of(f"{SUMMATION}/ram:RoundingAmount", decimal_of),
    "payable": _Of(f"{SUMMATION}/ram:DuePayableAmount", decimal_of),
}
"""Missing values are None, like empty fields."""

_LINE_TAX = "ram:SpecifiedLineTradeSettlement/ram:ApplicableTradeTax"
_LINE_SUM = "ram:SpecifiedLineTradeSettlement/ram:SpecifiedTradeSettlementLineMonetarySummation"

LINE = {
    "id": _Of("ram:AssociatedDocumentLineDocument/ram:LineID"),
    "name": _Of("ram:SpecifiedTradeProduct/ram:Name"),
    "description": _Of("ram:SpecifiedTradeProduct/ram:Description"),
    "seller_item_id": _Of("ram:SpecifiedTradeProduct/ram:SellerAssignedID"),
    "quantity": _Of("ram:SpecifiedLineTradeDelivery/ram:BilledQuantity", decimal_of),
    "unit": _Of("ram:SpecifiedLineTradeDelivery/ram:BilledQuantity/@unitCode"),
    "price": _Of("ram:SpecifiedLineTradeAgreement/ram:NetPriceProductTradePrice/ram:ChargeAmount", decimal_of),
    "net": _Of(f"{_LINE_SUM}/ram:LineTotalAmount", decimal_of),
    "tax_category": _Of(f"{_LINE_TAX}/ram:CategoryCode"),
    "tax_rate": _Of(f"{_LINE_TAX}/ram:RateApplicablePercent", decimal_of),
}


def _type(of: _Of) -> Literal["text", "decimal", "date"]:
    return "decimal" if of.read is decimal_of else "date" if of.read is _date else "text"


TYPES = {name: _type(of) for name, of in FIELDS.items()}
LINE_TYPES = {name: _type(of) for name, of in LINE.items()}
"""The types of the values, as in a mapping."""

_ROOT_PLACE = "/rsm:CrossIndustryInvoice"
_LINE_PLACE = f"{_ROOT_PLACE}/{LINES}"


def extract(embedded: EmbeddedInvoice) -> Extracted:
    """The invoice's fields and its `lines`. Raises DocumentRejected BAD_VALUE for values that cannot be read."""
    findings: list[Finding] = []
    fields = {name: _value(embedded.root, of, name, findings) for name, of in FIELDS.items()}
    fields["tax"] = _value(embedded.root, _tax_total(embedded.root), "tax", findings)
    elements = list(all_of(embedded.root, LINES))
    lines: list[Row] = []
    for index, element in enumerate(elements):
        # The path of a line is counted here, because path_of would walk through all previous lines for every value.
        place = f"{_LINE_PLACE}[{index + 1}]" if len(elements) > 1 else _LINE_PLACE
        row = {}
        for name, of in LINE.items():
            row[name] = _value(element, of, f"lines[{index}].{name}", findings, place)
        lines.append(row)
    if findings:
        raise DocumentRejected(FaultCode.BAD_VALUE, DocumentMessage("embedded.unreadable_values"), tuple(findings[:20]))
    return Extracted(fields, {"lines": lines})


def accounts_of(embedded: EmbeddedInvoice) -> tuple[str, ...]:
    """The accounts to which the invoice can be paid."""
    path = f"{SETTLEMENT}/ram:SpecifiedTradeSettlementPaymentMeans/ram:PayeePartyCreditorFinancialAccount/ram:IBANID"
    found = (text_of(element) for element in all_of(embedded.root, path))
    return tuple(dict.fromkeys(number for number in found if number))


def _tax_total(root: etree._Element) -> _Of:
    """The total tax in the invoice's currency. A second total may exist in the accounting currency."""
    currency = text_of(first(root, FIELDS["currency"].path))
    path = FIELDS["tax"].path
    own = f"{path}[@currencyID='{currency}']"
    safe = currency.isalpha() and first(root, own) is not None
    return _Of(own if safe else path, decimal_of)


def _value(context: etree._Element, of: _Of, name: str, findings: list[Finding], above: str = "") -> Value:
    path, _, attribute = of.path.partition("/@")
    element = first(context, path)
    if element is None:
        return Value(None, "", f"embedded:{above or _ROOT_PLACE}/{of.path}")
    raw = (element.get(attribute) or "") if attribute else (element.text or "")
    place = f"{above}/{of.path}" if above else path_of(element) + (f"/@{attribute}" if attribute else "")
    text = raw.strip()
    try:
        value = of.read(text) if text else None
    except ValueError:
        message = (
            DocumentMessage("embedded.not_a_date", text=text)
            if of.read is _date
            else DocumentMessage("embedded.not_a_number", text=text)
        )
        findings.append(Finding(FaultCode.BAD_VALUE, message, path=name, rule=f"embedded:{place}"))
        value = None
    return Value(value, raw, f"embedded:{place}")
