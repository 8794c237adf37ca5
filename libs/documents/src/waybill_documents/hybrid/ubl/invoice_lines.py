"""The invoice lines (BG-25): item, quantity and price."""

from __future__ import annotations

from decimal import Decimal

from lxml import etree

from waybill_documents.hybrid.cii import LINES, all_of, first, text_of
from waybill_documents.hybrid.ubl.parts import (
    SCHEME,
    Context,
    Elements,
    Part,
    UblConversion,
    amount,
    code,
    group,
    is_number,
    made,
    period,
    text,
)
from waybill_documents.hybrid.ubl.shared_parts import ALLOWANCE, category, indicator, invoiced_object

_LINE_AGREEMENT = "ram:SpecifiedLineTradeAgreement"
_LINE_SETTLEMENT = "ram:SpecifiedLineTradeSettlement"
_GROSS = f"{_LINE_AGREEMENT}/ram:GrossPriceProductTradePrice"
_NET = f"{_LINE_AGREEMENT}/ram:NetPriceProductTradePrice"
_LINE_NET = f"{_LINE_SETTLEMENT}/ram:SpecifiedTradeSettlementLineMonetarySummation/ram:LineTotalAmount"


def _basis_quantity(conversion: UblConversion, context: Context) -> Elements:
    """BT-149, with the net price, the gross price or both. UBL cannot express two different ones."""
    net, gross = first(context, f"{_NET}/ram:BasisQuantity"), first(context, f"{_GROSS}/ram:BasisQuantity")
    chosen = net if net is not None else gross
    if chosen is None:
        return
    unit = chosen.get("unitCode", "")
    yield made("cbc:BaseQuantity", conversion.token(chosen, "unitCode"), **({"unitCode": unit} if unit else {}))
    if net is not None and gross is not None and _equal(net, gross) and gross.get("unitCode", unit) == unit:
        conversion.take(gross, "unitCode")


def _discount(conversion: UblConversion, context: Context) -> Elements:
    """BT-147 and BT-148. If CII has no discount, it is the difference between the gross and the net price."""
    discount = first(context, f"{_GROSS}/ram:AppliedTradeAllowanceCharge")
    result = made("cac:AllowanceCharge")
    result.extend(indicator(conversion, discount) if discount is not None else ())
    if not len(result):
        result.append(made("cbc:ChargeIndicator", "false"))
    if discount is not None:
        result.extend(amount("cbc:Amount", "ram:ActualAmount")(conversion, discount))
    elif (difference := _gross_less_net(context)) is not None:
        result.append(made("cbc:Amount", difference, currencyID=conversion.currency))
    if len(result) > 1:
        result.extend(amount("cbc:BaseAmount", f"{_GROSS}/ram:ChargeAmount")(conversion, context))
        yield result


def _gross_less_net(context: Context) -> str | None:
    """A gross price below the net price stays unused: it would be a surcharge, which the core does not have."""
    texts = [text_of(first(context, f"{price}/ram:ChargeAmount")) for price in (_GROSS, _NET)]
    if not all(is_number(text) for text in texts):
        return None
    difference = Decimal(texts[0]) - Decimal(texts[1])
    return format(difference, "f") if difference >= 0 else None


def _equal(one: etree._Element, other: etree._Element) -> bool:
    texts = text_of(one), text_of(other)
    return all(is_number(text) for text in texts) and Decimal(texts[0]) == Decimal(texts[1])


def _line_object(conversion: UblConversion, context: Context) -> Elements:
    for document in all_of(context, f"{_LINE_SETTLEMENT}/ram:AdditionalReferencedDocument"):
        if text_of(first(document, "ram:TypeCode")) == "130":
            conversion.token(first(document, "ram:TypeCode"))
            yield from invoiced_object("cac:DocumentReference")(conversion, document)


_PRODUCT = "ram:SpecifiedTradeProduct"
_ITEM = group(
    "cac:Item",  # BG-31
    text("cbc:Description", f"{_PRODUCT}/ram:Description"),
    text("cbc:Name", f"{_PRODUCT}/ram:Name"),
    group("cac:BuyersItemIdentification", code("cbc:ID", f"{_PRODUCT}/ram:BuyerAssignedID")),
    group("cac:SellersItemIdentification", code("cbc:ID", f"{_PRODUCT}/ram:SellerAssignedID")),
    group("cac:StandardItemIdentification", code("cbc:ID", f"{_PRODUCT}/ram:GlobalID", **SCHEME)),
    group("cac:OriginCountry", code("cbc:IdentificationCode", f"{_PRODUCT}/ram:OriginTradeCountry/ram:ID")),
    group(
        "cac:CommodityClassification",
        code("cbc:ItemClassificationCode", "ram:ClassCode", listID="listID", listVersionID="listVersionID"),
        each=f"{_PRODUCT}/ram:DesignatedProductClassification",
    ),
    category("cac:ClassifiedTaxCategory", at=f"{_LINE_SETTLEMENT}/ram:ApplicableTradeTax"),
    group(
        "cac:AdditionalItemProperty",
        text("cbc:Name", "ram:Description"),
        text("cbc:Value", "ram:Value"),
        each=f"{_PRODUCT}/ram:ApplicableProductCharacteristic",
    ),
)


def _line(tag: str, quantity: str) -> Part:
    return group(
        tag,  # BG-25
        code("cbc:ID", "ram:AssociatedDocumentLineDocument/ram:LineID"),
        text("cbc:Note", "ram:AssociatedDocumentLineDocument/ram:IncludedNote/ram:Content"),
        code(quantity, "ram:SpecifiedLineTradeDelivery/ram:BilledQuantity", unitCode="unitCode"),
        amount("cbc:LineExtensionAmount", _LINE_NET),
        code("cbc:AccountingCost", f"{_LINE_SETTLEMENT}/ram:ReceivableSpecifiedTradeAccountingAccount/ram:ID"),
        group("cac:InvoicePeriod", *period(f"{_LINE_SETTLEMENT}/ram:BillingSpecifiedPeriod")),
        group(
            "cac:OrderLineReference",
            code("cbc:LineID", f"{_LINE_AGREEMENT}/ram:BuyerOrderReferencedDocument/ram:LineID"),
        ),
        _line_object,
        group("cac:AllowanceCharge", *ALLOWANCE, each=f"{_LINE_SETTLEMENT}/ram:SpecifiedTradeAllowanceCharge"),
        _ITEM,
        group("cac:Price", amount("cbc:PriceAmount", f"{_NET}/ram:ChargeAmount"), _basis_quantity, _discount),
        each=LINES,
    )


INVOICE_LINES = _line("cac:InvoiceLine", "cbc:InvoicedQuantity")
CREDIT_NOTE_LINES = _line("cac:CreditNoteLine", "cbc:CreditedQuantity")
