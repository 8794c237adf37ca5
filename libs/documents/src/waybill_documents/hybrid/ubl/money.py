"""Payment, allowances and charges, taxes and totals."""

from __future__ import annotations

from decimal import Decimal

from lxml import etree

from waybill_documents.hybrid.cii import SETTLEMENT, SUMMATION, all_of, first, text_of
from waybill_documents.hybrid.ubl.parts import (
    Context,
    Elements,
    Part,
    UblConversion,
    amount,
    code,
    day,
    fixed,
    group,
    is_number,
    made,
    text,
)
from waybill_documents.hybrid.ubl.shared_parts import ALLOWANCE, category

_TERMS = f"{SETTLEMENT}/ram:SpecifiedTradePaymentTerms"
_DIRECT_DEBITS = frozenset({"49", "59"})

_ACCOUNT = group(
    "cac:PayeeFinancialAccount",  # BG-17
    code("cbc:ID", "ram:PayeePartyCreditorFinancialAccount/ram:IBANID"),
    code("cbc:ID", "ram:PayeePartyCreditorFinancialAccount/ram:ProprietaryID"),
    text("cbc:Name", "ram:PayeePartyCreditorFinancialAccount/ram:AccountName"),
    group(
        "cac:FinancialInstitutionBranch",
        code("cbc:ID", "ram:PayeeSpecifiedCreditorFinancialInstitution/ram:BICID"),
    ),
)
_CARD = group(
    "cac:CardAccount",  # BG-18
    code("cbc:PrimaryAccountNumberID", "ram:ID"),
    fixed("cbc:NetworkID", "NA"),  # the core does not have the network, but UBL requires it
    text("cbc:HolderName", "ram:CardholderName"),
    at="ram:ApplicableTradeSettlementFinancialCard",
)
_DEBTOR = group("cac:PayerFinancialAccount", code("cbc:ID", "ram:PayerPartyDebtorFinancialAccount/ram:IBANID"))


def _payment_means(conversion: UblConversion, context: Context) -> Elements:
    """BG-16. CII has the payment reference and due date beside the means of payment, UBL inside each of them."""
    reference = conversion.token(first(context, f"{SETTLEMENT}/ram:PaymentReference"))  # BT-83
    due = (
        list(day("cbc:PaymentDueDate", f"{_TERMS}/ram:DueDateDateTime")(conversion, context))
        if conversion.credit_note
        else []
    )
    found = list(all_of(context, f"{SETTLEMENT}/ram:SpecifiedTradeSettlementPaymentMeans"))
    for means in found:
        yield _one_means(conversion, means, reference, due)
    if not found and (reference or due):
        unknown = made("cac:PaymentMeans")
        unknown.append(made("cbc:PaymentMeansCode", "1"))  # UNTDID 4461: the instrument is not defined
        unknown.extend(due)
        unknown.extend([made("cbc:PaymentID", reference)] if reference else [])
        yield unknown


def _one_means(conversion: UblConversion, means: Context, reference: str, due: list[etree._Element]) -> etree._Element:
    result = made("cac:PaymentMeans")
    result.extend(code("cbc:PaymentMeansCode", "ram:TypeCode")(conversion, means))
    information = conversion.token(first(means, "ram:Information"))
    if information and len(result):
        result[0].set("name", information)
    result.extend([made("cbc:PaymentDueDate", one.text) for one in due])
    result.extend([made("cbc:PaymentID", reference)] if reference else [])
    result.extend(_CARD(conversion, means))
    result.extend(_ACCOUNT(conversion, means))
    mandate = made("cac:PaymentMandate")  # BG-19
    if text_of(first(means, "ram:TypeCode")) in _DIRECT_DEBITS:
        number = first(conversion.root, f"{_TERMS}/ram:DirectDebitMandateID")
        mandate.extend([made("cbc:ID", conversion.token(number))] if number is not None else [])
    mandate.extend(_DEBTOR(conversion, means))
    result.extend([mandate] if len(mandate) else [])
    return result


PAYMENT: tuple[Part, ...] = (
    _payment_means,
    group("cac:PaymentTerms", text("cbc:Note", f"{_TERMS}/ram:Description")),  # BT-20
    group(
        "cac:AllowanceCharge",
        *ALLOWANCE,
        category("cac:TaxCategory", at="ram:CategoryTradeTax"),
        each=f"{SETTLEMENT}/ram:SpecifiedTradeAllowanceCharge",
    ),
)

_SUBTOTAL = group(
    "cac:TaxSubtotal",  # BG-23
    amount("cbc:TaxableAmount", "ram:BasisAmount"),
    amount("cbc:TaxAmount", "ram:CalculatedAmount"),
    category("cac:TaxCategory"),
    each=f"{SETTLEMENT}/ram:ApplicableTradeTax",
)


def _tax_totals(conversion: UblConversion, context: Context) -> Elements:
    """BT-110 with the breakdown, then BT-111, the tax in the accounting currency."""
    totals: dict[str, etree._Element] = {}
    for element in all_of(context, f"{SUMMATION}/ram:TaxTotalAmount"):
        totals.setdefault(element.get("currencyID", conversion.currency), element)
    subtotals = list(_SUBTOTAL(conversion, context))
    own = totals.pop(conversion.currency, None)
    if own is not None or subtotals:
        total = made("cac:TaxTotal")
        shown = conversion.token(own, "currencyID") if own is not None else _sum_of_tax(subtotals)
        total.append(made("cbc:TaxAmount", shown, currencyID=conversion.currency))
        total.extend(subtotals)
        yield total
    accounting = text_of(first(context, f"{SETTLEMENT}/ram:TaxCurrencyCode"))
    if accounting in totals:
        total = made("cac:TaxTotal")
        total.append(made("cbc:TaxAmount", conversion.token(totals[accounting], "currencyID"), currencyID=accounting))
        yield total


def _sum_of_tax(subtotals: list[etree._Element]) -> str:
    """The tax total may be missing, as in an invoice outside the scope of VAT, but UBL requires it."""
    amounts = [one.findtext("{*}TaxAmount") or "0" for one in subtotals]
    return format(sum((Decimal(one) for one in amounts if is_number(one)), Decimal("0.00")), "f")


TOTALS: tuple[Part, ...] = (
    _tax_totals,
    group(
        "cac:LegalMonetaryTotal",  # BG-22
        amount("cbc:LineExtensionAmount", "ram:LineTotalAmount"),
        amount("cbc:TaxExclusiveAmount", "ram:TaxBasisTotalAmount"),
        amount("cbc:TaxInclusiveAmount", "ram:GrandTotalAmount"),
        amount("cbc:AllowanceTotalAmount", "ram:AllowanceTotalAmount"),
        amount("cbc:ChargeTotalAmount", "ram:ChargeTotalAmount"),
        amount("cbc:PrepaidAmount", "ram:TotalPrepaidAmount"),
        amount("cbc:PayableRoundingAmount", "ram:RoundingAmount"),
        amount("cbc:PayableAmount", "ram:DuePayableAmount"),
        at=SUMMATION,
    ),
)
