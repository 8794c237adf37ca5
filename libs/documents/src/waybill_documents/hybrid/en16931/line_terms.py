"""The invoice lines (BG-25): item, quantity and price."""

from __future__ import annotations

from waybill_documents.hybrid.en16931.entries import Entry, part, term
from waybill_documents.hybrid.en16931.kinds import AMOUNT, CODE, DAY, ID
from waybill_documents.hybrid.en16931.party_terms import SCHEME
from waybill_documents.hybrid.en16931.payment_terms import allowance_or_charge, category
from waybill_documents.hybrid.en16931.special_entries import BaseQuantity

_DOCUMENT = "ram:AssociatedDocumentLineDocument"
_AGREEMENT = "ram:SpecifiedLineTradeAgreement"
_SETTLEMENT = "ram:SpecifiedLineTradeSettlement"
_PRODUCT = "ram:SpecifiedTradeProduct"
_PERIOD = f"{_SETTLEMENT}/ram:BillingSpecifiedPeriod"
_GROSS = f"{_AGREEMENT}/ram:GrossPriceProductTradePrice"
_DISCOUNT = f"{_GROSS}/ram:AppliedTradeAllowanceCharge"
_INDICATED = "[ram:ChargeIndicator/udt:Indicator={}]/ram:ActualAmount"
_PRICE_ALLOWANCE = "cac:Price/cac:AllowanceCharge"
_OBJECT = f"{_SETTLEMENT}/ram:AdditionalReferencedDocument"
_UBL_OBJECT = "cac:DocumentReference[cbc:DocumentTypeCode=130]/cbc:ID"
_STANDARD_ITEM = "cac:Item/cac:StandardItemIdentification/cbc:ID"

_PRICE: tuple[Entry, ...] = (  # BG-29
    term("BT-146", f"{_AGREEMENT}/ram:NetPriceProductTradePrice/ram:ChargeAmount", "cac:Price/cbc:PriceAmount", AMOUNT),
    term(
        "BT-148", f"{_GROSS}/ram:ChargeAmount", f"{_PRICE_ALLOWANCE}[cbc:ChargeIndicator=false]/cbc:BaseAmount", AMOUNT
    ),
    term(
        "BT-147",
        f"{_DISCOUNT}{_INDICATED.format('false')}",
        f"{_PRICE_ALLOWANCE}[cbc:ChargeIndicator=false]/cbc:Amount",
        AMOUNT,
        also_cii=(f"{_DISCOUNT}{_INDICATED.format('0')}", f"{_DISCOUNT}{_INDICATED.format('')}"),
        also_ubl=(f"{_PRICE_ALLOWANCE}[cbc:ChargeIndicator=0]/cbc:Amount",),
    ),
    BaseQuantity("BT-149"),
)

_ITEM: tuple[Entry, ...] = (  # BG-31
    term("BT-153", f"{_PRODUCT}/ram:Name", "cac:Item/cbc:Name"),
    term("BT-154", f"{_PRODUCT}/ram:Description", "cac:Item/cbc:Description"),
    term("BT-155", f"{_PRODUCT}/ram:SellerAssignedID", "cac:Item/cac:SellersItemIdentification/cbc:ID", ID),
    term("BT-156", f"{_PRODUCT}/ram:BuyerAssignedID", "cac:Item/cac:BuyersItemIdentification/cbc:ID", ID),
    term("BT-157", f"{_PRODUCT}/ram:GlobalID", _STANDARD_ITEM, ID, attributes=SCHEME),
    term(
        "BT-158",
        f"{_PRODUCT}/ram:DesignatedProductClassification+/ram:ClassCode",
        "cac:Item/cac:CommodityClassification+/cbc:ItemClassificationCode",
        ID,
        attributes=("listID", "listVersionID"),
        many=True,
    ),
    term(
        "BT-159", f"{_PRODUCT}/ram:OriginTradeCountry/ram:ID", "cac:Item/cac:OriginCountry/cbc:IdentificationCode", CODE
    ),
    part(
        "BG-32",
        f"{_PRODUCT}/ram:ApplicableProductCharacteristic",
        "cac:Item/cac:AdditionalItemProperty",
        term("BT-160", "ram:Description", "cbc:Name"),
        term("BT-161", "ram:Value", "cbc:Value"),
        many=True,
    ),
)

LINES: tuple[Entry, ...] = (
    part(
        "BG-25",
        "rsm:SupplyChainTradeTransaction/ram:IncludedSupplyChainTradeLineItem",
        "cac:InvoiceLine",
        term("BT-126", f"{_DOCUMENT}/ram:LineID", "cbc:ID", ID),
        term("BT-127", f"{_DOCUMENT}/ram:IncludedNote/ram:Content", "cbc:Note"),
        term(
            "BT-128",
            f"{_OBJECT}[ram:TypeCode=130]/ram:IssuerAssignedID",
            _UBL_OBJECT,
            ID,
            # The invoiced object is the only document that a line of the core refers to.
            also_cii=(f"{_OBJECT}[ram:TypeCode=]/ram:IssuerAssignedID",),
            also_ubl=("cac:DocumentReference[cbc:DocumentTypeCode=]/cbc:ID",),
        ),
        term("BT-128-1", f"{_OBJECT}[ram:TypeCode=130]/ram:ReferenceTypeCode", f"{_UBL_OBJECT}/@schemeID", CODE),
        term(
            "BT-129",
            "ram:SpecifiedLineTradeDelivery/ram:BilledQuantity",
            "cbc:InvoicedQuantity",
            CODE,
            attributes=("unitCode",),
        ),
        term(
            "BT-131",
            f"{_SETTLEMENT}/ram:SpecifiedTradeSettlementLineMonetarySummation/ram:LineTotalAmount",
            "cbc:LineExtensionAmount",
            AMOUNT,
        ),
        term(
            "BT-132",
            f"{_AGREEMENT}/ram:BuyerOrderReferencedDocument/ram:LineID",
            "cac:OrderLineReference/cbc:LineID",
            ID,
        ),
        term("BT-133", f"{_SETTLEMENT}/ram:ReceivableSpecifiedTradeAccountingAccount/ram:ID", "cbc:AccountingCost", ID),
        term("BT-134", f"{_PERIOD}/ram:StartDateTime/udt:DateTimeString", "cac:InvoicePeriod/cbc:StartDate", DAY),
        term("BT-135", f"{_PERIOD}/ram:EndDateTime/udt:DateTimeString", "cac:InvoicePeriod/cbc:EndDate", DAY),
        allowance_or_charge(
            "BG-27",
            f"{_SETTLEMENT}/",
            charge=False,
            terms=("BT-136", "BT-137", "BT-138", "BT-139", "BT-140"),
            taxed=None,
        ),
        allowance_or_charge(
            "BG-28",
            f"{_SETTLEMENT}/",
            charge=True,
            terms=("BT-141", "BT-142", "BT-143", "BT-144", "BT-145"),
            taxed=None,
        ),
        *_PRICE,
        *category(f"{_SETTLEMENT}/ram:ApplicableTradeTax/", "cac:Item/cac:ClassifiedTaxCategory", "BT-151", "BT-152"),
        *_ITEM,
        many=True,
    ),
)
