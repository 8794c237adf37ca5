"""The head of the document: type, dates, currency, and references to other documents, in the order of UBL."""

from __future__ import annotations

from waybill_documents.hybrid.cii import (
    AGREEMENT,
    DELIVERY,
    DOCUMENT,
    GUIDELINE,
    PROCESS,
    SETTLEMENT,
    all_of,
    first,
    text_of,
)
from waybill_documents.hybrid.ubl.parts import (
    Context,
    Elements,
    Part,
    UblConversion,
    code,
    day,
    group,
    made,
    period,
    read_day,
    text,
)
from waybill_documents.hybrid.ubl.shared_parts import invoiced_object


def _notes(conversion: UblConversion, context: Context) -> Elements:
    """BG-1. UBL has no place for the subject, so the binding puts it before the text: `#AAK#…`."""
    for note in all_of(context, f"{DOCUMENT}/ram:IncludedNote"):
        content, subject = first(note, "ram:Content"), first(note, "ram:SubjectCode")
        if content is not None:
            before = f"#{conversion.token(subject)}#" if subject is not None else ""
            yield made("cbc:Note", before + conversion.take(content))


def _tax_point(conversion: UblConversion, context: Context) -> Elements:
    """BT-7. CII repeats it in every tax category; a different day in one of them stays unused."""
    shown = None
    for element in all_of(context, f"{SETTLEMENT}/ram:ApplicableTradeTax/ram:TaxPointDate/udt:DateString"):
        if shown is None:
            shown = read_day(conversion, element)
            if shown:
                yield made("cbc:TaxPointDate", shown)
        elif element.get("format") == "102" and text_of(element) == shown.replace("-", ""):
            conversion.take(element, "format")


_TAX_POINTS = {"5": "3", "29": "35", "72": "432"}
"""BT-8: UNTDID 2475 in CII is UNTDID 2005 in UBL."""


def _tax_point_code(conversion: UblConversion, context: Context) -> Elements:
    found = [tax for tax in all_of(context, f"{SETTLEMENT}/ram:ApplicableTradeTax/ram:DueDateTypeCode") if text_of(tax)]
    shown = text_of(found[0]) if found else ""
    if shown in _TAX_POINTS:
        yield made("cbc:DescriptionCode", _TAX_POINTS[shown])
        for element in found:
            if text_of(element) == shown:
                conversion.take(element)


def _order(conversion: UblConversion, context: Context) -> Elements:
    """BT-13 and BT-14. UBL requires an order number even if only the seller's is known."""
    buyers = list(_reference("cbc:ID", "ram:BuyerOrderReferencedDocument")(conversion, context))
    sellers = list(_reference("cbc:SalesOrderID", "ram:SellerOrderReferencedDocument")(conversion, context))
    if buyers or sellers:
        reference = made("cac:OrderReference")
        reference.extend(buyers or [made("cbc:ID", "NA")])
        reference.extend(sellers)
        yield reference


def _reference(tag: str, document: str) -> Part:
    return code(tag, f"{document}/ram:IssuerAssignedID")


def _documents(type_code: str, part: Part) -> Part:
    """The additional documents of one type: 50 is a tender, 130 the invoiced object, 916 an attachment."""

    def chosen(conversion: UblConversion, context: Context) -> Elements:
        for document in all_of(context, f"{AGREEMENT}/ram:AdditionalReferencedDocument"):
            if text_of(first(document, "ram:TypeCode")) == type_code:
                conversion.token(first(document, "ram:TypeCode"))
                yield from part(conversion, document)

    return chosen


_ATTACHED = group(
    "cac:AdditionalDocumentReference",  # BG-24
    code("cbc:ID", "ram:IssuerAssignedID"),
    text("cbc:DocumentDescription", "ram:Name"),
    group(
        "cac:Attachment",
        code(
            "cbc:EmbeddedDocumentBinaryObject", "ram:AttachmentBinaryObject", mimeCode="mimeCode", filename="filename"
        ),
        group("cac:ExternalReference", code("cbc:URI", "ram:URIID")),
    ),
)


def _project(conversion: UblConversion, context: Context) -> str:
    """BT-11. CII also requires a name, for which the core has no place; a meaningless name may be dropped."""
    project = first(context, f"{AGREEMENT}/ram:SpecifiedProcuringProject")
    if project is None:
        return ""
    number, name = first(project, "ram:ID"), first(project, "ram:Name")
    if name is not None and text_of(name).lower() in {"project reference", text_of(number).lower()}:
        conversion.take(name)
    return conversion.token(number)


def _project_of_invoice(conversion: UblConversion, context: Context) -> Elements:
    if number := _project(conversion, context):
        reference = made("cac:ProjectReference")
        reference.append(made("cbc:ID", number))
        yield reference


def _project_of_credit_note(conversion: UblConversion, context: Context) -> Elements:
    if number := _project(conversion, context):
        reference = made("cac:AdditionalDocumentReference")
        reference.extend([made("cbc:ID", number), made("cbc:DocumentTypeCode", "50")])
        yield reference


_BILLING = group(
    "cac:BillingReference",  # BG-3
    group(
        "cac:InvoiceDocumentReference",
        code("cbc:ID", "ram:IssuerAssignedID"),
        day("cbc:IssueDate", "ram:FormattedIssueDateTime"),
    ),
    each=f"{SETTLEMENT}/ram:InvoiceReferencedDocument",
)
_DESPATCH = group(
    "cac:DespatchDocumentReference", _reference("cbc:ID", "ram:DespatchAdviceReferencedDocument"), at=DELIVERY
)
_RECEIPT = group(
    "cac:ReceiptDocumentReference", _reference("cbc:ID", "ram:ReceivingAdviceReferencedDocument"), at=DELIVERY
)
_CONTRACT = group("cac:ContractDocumentReference", _reference("cbc:ID", "ram:ContractReferencedDocument"), at=AGREEMENT)
_ORIGINATOR = _documents("50", group("cac:OriginatorDocumentReference", code("cbc:ID", "ram:IssuerAssignedID")))
_ADDITIONAL: tuple[Part, ...] = (
    _documents("130", invoiced_object("cac:AdditionalDocumentReference")),
    _documents("916", _ATTACHED),
)


def _order_reference(conversion: UblConversion, context: Context) -> Elements:
    agreement = first(context, AGREEMENT)
    if agreement is not None:
        yield from _order(conversion, agreement)


_IDENTITY: tuple[Part, ...] = (
    code("cbc:CustomizationID", GUIDELINE),  # BT-24
    code("cbc:ProfileID", PROCESS),  # BT-23
    code("cbc:ID", f"{DOCUMENT}/ram:ID"),
    day("cbc:IssueDate", f"{DOCUMENT}/ram:IssueDateTime"),
)
_TYPE_CODE = f"{DOCUMENT}/ram:TypeCode"
_CURRENCIES: tuple[Part, ...] = (
    code("cbc:DocumentCurrencyCode", f"{SETTLEMENT}/ram:InvoiceCurrencyCode"),
    code("cbc:TaxCurrencyCode", f"{SETTLEMENT}/ram:TaxCurrencyCode"),
    code("cbc:AccountingCost", f"{SETTLEMENT}/ram:ReceivableSpecifiedTradeAccountingAccount/ram:ID"),
    text("cbc:BuyerReference", f"{AGREEMENT}/ram:BuyerReference"),
    group("cac:InvoicePeriod", *period(f"{SETTLEMENT}/ram:BillingSpecifiedPeriod"), _tax_point_code),  # BG-14
    _order_reference,
    _BILLING,
    _DESPATCH,
    _RECEIPT,
)

INVOICE_HEAD: tuple[Part, ...] = (
    *_IDENTITY,
    day("cbc:DueDate", f"{SETTLEMENT}/ram:SpecifiedTradePaymentTerms/ram:DueDateDateTime"),
    code("cbc:InvoiceTypeCode", _TYPE_CODE),
    _notes,
    _tax_point,
    *_CURRENCIES,
    _ORIGINATOR,
    _CONTRACT,
    *_ADDITIONAL,
    _project_of_invoice,
)

CREDIT_NOTE_HEAD: tuple[Part, ...] = (
    *_IDENTITY,
    _tax_point,
    code("cbc:CreditNoteTypeCode", _TYPE_CODE),
    _notes,
    *_CURRENCIES,
    _CONTRACT,
    *_ADDITIONAL,
    _project_of_credit_note,
    _ORIGINATOR,
)
