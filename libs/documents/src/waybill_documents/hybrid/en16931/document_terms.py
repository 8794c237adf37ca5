"""The head of the document: number, dates, currencies and references to other documents; and the whole table."""

from __future__ import annotations

from waybill_documents.hybrid.en16931.entries import Entry, filler, ignored, part, term
from waybill_documents.hybrid.en16931.kinds import CODE, DAY, FILE, ID
from waybill_documents.hybrid.en16931.line_terms import LINES
from waybill_documents.hybrid.en16931.party_terms import AGREEMENT, DELIVERY, PARTIES, SETTLEMENT
from waybill_documents.hybrid.en16931.payment_entries import TaxPointCode
from waybill_documents.hybrid.en16931.payment_terms import MONEY, PAYMENT
from waybill_documents.hybrid.en16931.special_entries import NoteEntry

_CONTEXT = "rsm:ExchangedDocumentContext"
_DOCUMENT = "rsm:ExchangedDocument"
_PERIOD = f"{SETTLEMENT}/ram:BillingSpecifiedPeriod"
_ADDITIONAL = f"{AGREEMENT}/ram:AdditionalReferencedDocument"
_UBL_ADDITIONAL = "cac:AdditionalDocumentReference"
_TAXES = f"{SETTLEMENT}/ram:ApplicableTradeTax"
_OBJECT = f"{_UBL_ADDITIONAL}[cbc:DocumentTypeCode=130]/cbc:ID"


def _reference(name: str, cii: str, ubl: str) -> Entry:
    return term(name, f"{cii}/ram:IssuerAssignedID", ubl, ID)


IDENTITY: tuple[Entry, ...] = (
    # These two are first: how amounts are read depends on the currency.
    term("BT-5", f"{SETTLEMENT}/ram:InvoiceCurrencyCode", "cbc:DocumentCurrencyCode", CODE),
    term("BT-6", f"{SETTLEMENT}/ram:TaxCurrencyCode", "cbc:TaxCurrencyCode", CODE),
    ignored("2.1", ubl="cbc:UBLVersionID"),
    term("BT-24", f"{_CONTEXT}/ram:GuidelineSpecifiedDocumentContextParameter/ram:ID", "cbc:CustomizationID", ID),
    term("BT-23", f"{_CONTEXT}/ram:BusinessProcessSpecifiedDocumentContextParameter/ram:ID", "cbc:ProfileID", ID),
    term("BT-1", f"{_DOCUMENT}/ram:ID", "cbc:ID", ID),
    term("BT-2", f"{_DOCUMENT}/ram:IssueDateTime/udt:DateTimeString", "cbc:IssueDate", DAY),
    term("BT-3", f"{_DOCUMENT}/ram:TypeCode", "cbc:InvoiceTypeCode", CODE),
    part("BG-1", f"{_DOCUMENT}/ram:IncludedNote", "cbc:Note", NoteEntry("BT-21", "BT-22"), many=True),
)

_REFERENCES: tuple[Entry, ...] = (
    term("BT-10", f"{AGREEMENT}/ram:BuyerReference", "cbc:BuyerReference"),
    _reference("BT-12", f"{AGREEMENT}/ram:ContractReferencedDocument", "cac:ContractDocumentReference/cbc:ID"),
    _reference("BT-13", f"{AGREEMENT}/ram:BuyerOrderReferencedDocument", "cac:OrderReference/cbc:ID"),
    # UBL requires an order number even if only the seller's is known.
    filler("NA", ubl="cac:OrderReference/cbc:ID", when="BT-14", unless="BT-13"),
    _reference("BT-14", f"{AGREEMENT}/ram:SellerOrderReferencedDocument", "cac:OrderReference/cbc:SalesOrderID"),
    _reference("BT-15", f"{DELIVERY}/ram:ReceivingAdviceReferencedDocument", "cac:ReceiptDocumentReference/cbc:ID"),
    _reference("BT-16", f"{DELIVERY}/ram:DespatchAdviceReferencedDocument", "cac:DespatchDocumentReference/cbc:ID"),
    _reference("BT-17", f"{_ADDITIONAL}+[ram:TypeCode=50]", "cac:OriginatorDocumentReference/cbc:ID"),
    _reference("BT-18", f"{_ADDITIONAL}[ram:TypeCode=130]", _OBJECT),
    term("BT-18-1", f"{_ADDITIONAL}[ram:TypeCode=130]/ram:ReferenceTypeCode", f"{_OBJECT}/@schemeID", CODE),
    term("BT-19", f"{SETTLEMENT}/ram:ReceivableSpecifiedTradeAccountingAccount/ram:ID", "cbc:AccountingCost", ID),
    part(
        "BG-3",
        f"{SETTLEMENT}/ram:InvoiceReferencedDocument",
        "cac:BillingReference",
        term("BT-25", "ram:IssuerAssignedID", "cac:InvoiceDocumentReference/cbc:ID", ID),
        term(
            "BT-26",
            "ram:FormattedIssueDateTime/qdt:DateTimeString",
            "cac:InvoiceDocumentReference/cbc:IssueDate",
            DAY,
        ),
        many=True,
    ),
    part(
        "BG-24",
        f"{_ADDITIONAL}[ram:TypeCode=916]",
        f"{_UBL_ADDITIONAL}[cbc:DocumentTypeCode!=130]",
        term("BT-122", "ram:IssuerAssignedID", "cbc:ID", ID),
        term("BT-123", "ram:Name", "cbc:DocumentDescription"),
        term("BT-124", "ram:URIID", "cac:Attachment/cac:ExternalReference/cbc:URI", ID),
        term(
            "BT-125",
            "ram:AttachmentBinaryObject",
            "cac:Attachment/cbc:EmbeddedDocumentBinaryObject",
            FILE,
            attributes=("mimeCode", "filename"),
        ),
        ignored("916", ubl="cbc:DocumentTypeCode"),
        many=True,
        ubl_credit_note=f"{_UBL_ADDITIONAL}[cbc:DocumentTypeCode!=130][cbc:DocumentTypeCode!=50]",
        # A document without a type supports the invoice, as every document of UBL without one does.
        also_cii=(f"{_ADDITIONAL}[ram:TypeCode=]",),
    ),
    # After the documents, beside which a CreditNote has it.
    term(
        "BT-11",
        f"{AGREEMENT}/ram:SpecifiedProcuringProject/ram:ID",
        "cac:ProjectReference/cbc:ID",
        ID,
        ubl_credit_note=f"{_UBL_ADDITIONAL}+[cbc:DocumentTypeCode=50]/cbc:ID",
    ),
    filler("Project reference", cii=f"{AGREEMENT}/ram:SpecifiedProcuringProject/ram:Name", when="BT-11"),
)

_PERIODS: tuple[Entry, ...] = (
    term("BT-73", f"{_PERIOD}/ram:StartDateTime/udt:DateTimeString", "cac:InvoicePeriod/cbc:StartDate", DAY),
    term("BT-74", f"{_PERIOD}/ram:EndDateTime/udt:DateTimeString", "cac:InvoicePeriod/cbc:EndDate", DAY),
    # CII has these two in a tax category. Many repeat them in each, but the rules of the standard allow one alone.
    term("BT-7", f"{_TAXES}/ram:TaxPointDate/udt:DateString", "cbc:TaxPointDate", DAY, agree=True),
    TaxPointCode(
        term("BT-8", f"{_TAXES}/ram:DueDateTypeCode", "cac:InvoicePeriod/cbc:DescriptionCode", CODE, agree=True)
    ),
)

INVOICE: tuple[Entry, ...] = (*IDENTITY, *_REFERENCES, *PARTIES, *PAYMENT, *MONEY, *_PERIODS, *LINES)
"""The whole table, in an order that works for reading and writing. The order in a document comes from its schema."""
