"""Payment, allowances and charges, taxes and totals (BG-16 to BG-23)."""

from __future__ import annotations

from waybill_documents.hybrid.en16931.entries import Entry, filler, part, term
from waybill_documents.hybrid.en16931.kinds import AMOUNT, CODE, DAY, ID
from waybill_documents.hybrid.en16931.party_terms import SETTLEMENT
from waybill_documents.hybrid.en16931.paths import path
from waybill_documents.hybrid.en16931.payment_entries import InPaymentMeans, PaymentAccount, TaxTotal

TERMS = f"{SETTLEMENT}/ram:SpecifiedTradePaymentTerms"

_PAYMENT_MEANS = part(
    "BG-16",
    f"{SETTLEMENT}/ram:SpecifiedTradeSettlementPaymentMeans",
    "cac:PaymentMeans",
    term("BT-81", "ram:TypeCode", "cbc:PaymentMeansCode", CODE),
    term("BT-82", "ram:Information", "cbc:PaymentMeansCode/@name"),
    PaymentAccount("BT-84"),
    term("BT-85", "ram:PayeePartyCreditorFinancialAccount/ram:AccountName", "cac:PayeeFinancialAccount/cbc:Name"),
    term(
        "BT-86",
        "ram:PayeeSpecifiedCreditorFinancialInstitution/ram:BICID",
        "cac:PayeeFinancialAccount/cac:FinancialInstitutionBranch/cbc:ID",
        CODE,
    ),
    term(
        "BT-87", "ram:ApplicableTradeSettlementFinancialCard/ram:ID", "cac:CardAccount/cbc:PrimaryAccountNumberID", ID
    ),
    # The core does not have the network of a card, but UBL requires it.
    filler("NA", ubl="cac:CardAccount/cbc:NetworkID", when="BT-87"),
    term("BT-88", "ram:ApplicableTradeSettlementFinancialCard/ram:CardholderName", "cac:CardAccount/cbc:HolderName"),
    term(
        "BT-91",
        "ram:PayerPartyDebtorFinancialAccount/ram:IBANID",
        "cac:PaymentMandate/cac:PayerFinancialAccount/cbc:ID",
        CODE,
    ),
    many=True,
)

_DUE = f"{TERMS}/ram:DueDateDateTime/udt:DateTimeString"
_DUE_IN_MEANS = "cac:PaymentMeans/cbc:PaymentDueDate"
TAX_TYPE = "type of tax"
"""VAT, or another tax that both syntaxes can name."""

PAYMENT: tuple[Entry, ...] = (
    _PAYMENT_MEANS,
    term(
        "BT-90",
        f"{SETTLEMENT}/ram:CreditorReferenceID",
        "cac:AccountingSupplierParty/cac:Party/cac:PartyIdentification+/cbc:ID[@schemeID=SEPA]",
        ID,
        agree=True,
        also_ubl=("cac:PayeeParty/cac:PartyIdentification/cbc:ID[@schemeID=SEPA]",),
    ),
    InPaymentMeans(
        term(
            "BT-83",
            f"{SETTLEMENT}/ram:PaymentReference",
            None,
            ID,
            agree=True,
            also_ubl=("cac:PaymentMeans/cbc:PaymentID",),
        ),
        path("cbc:PaymentID"),
        each=True,
    ),
    InPaymentMeans(
        term(
            "BT-89",
            f"{TERMS}/ram:DirectDebitMandateID",
            None,
            ID,
            agree=True,
            also_ubl=("cac:PaymentMeans/cac:PaymentMandate/cbc:ID",),
        ),
        path("cac:PaymentMandate/cbc:ID"),
        mandate=True,
    ),
    InPaymentMeans(
        # A CreditNote of UBL has the due date in a means of payment, and at most once.
        term("BT-9", _DUE, "cbc:DueDate", DAY, agree=True, ubl_credit_note="", also_ubl=(_DUE_IN_MEANS,)),
        path("cbc:PaymentDueDate"),
    ),
    term("BT-20", f"{TERMS}/ram:Description", "cac:PaymentTerms/cbc:Note"),
)


def category(cii: str, ubl: str, code: str, rate: str) -> tuple[Entry, ...]:
    """A tax category. The reasons for an exemption have numbers only in the tax breakdown (BT-120, BT-121)."""
    return (
        term(code, f"{cii}ram:CategoryCode", f"{ubl}/cbc:ID", CODE),
        term(rate, f"{cii}ram:RateApplicablePercent", f"{ubl}/cbc:Percent", CODE),
        term("BT-121", f"{cii}ram:ExemptionReasonCode", f"{ubl}/cbc:TaxExemptionReasonCode", CODE),
        term("BT-120", f"{cii}ram:ExemptionReason", f"{ubl}/cbc:TaxExemptionReason"),
        term(TAX_TYPE, f"{cii}ram:TypeCode", f"{ubl}/cac:TaxScheme/cbc:ID", CODE),
    )


def allowance_or_charge(
    group: str, at: str, *, charge: bool, terms: tuple[str, ...], taxed: tuple[str, str] | None
) -> Entry:
    """A group of allowances or of charges: its amount, base, percentage, reason and code of the reason."""
    amount, base, percentage, reason, code = terms
    word, digit = ("true", "1") if charge else ("false", "0")
    cii = f"{at}ram:SpecifiedTradeAllowanceCharge[ram:ChargeIndicator/udt:Indicator={{}}]"
    ubl = "cac:AllowanceCharge[cbc:ChargeIndicator={}]"
    return part(
        group,
        cii.format(word),
        ubl.format(word),
        term(code, "ram:ReasonCode", "cbc:AllowanceChargeReasonCode", CODE),
        term(reason, "ram:Reason", "cbc:AllowanceChargeReason"),
        term(percentage, "ram:CalculationPercent", "cbc:MultiplierFactorNumeric", CODE),
        term(amount, "ram:ActualAmount", "cbc:Amount", AMOUNT),
        term(base, "ram:BasisAmount", "cbc:BaseAmount", AMOUNT),
        *(category("ram:CategoryTradeTax/", "cac:TaxCategory", *taxed) if taxed else ()),
        many=True,
        also_cii=(cii.format(digit),),
        also_ubl=(ubl.format(digit),),
    )


_SUMS = f"{SETTLEMENT}/ram:SpecifiedTradeSettlementHeaderMonetarySummation"


def _total(name: str, cii: str, ubl: str) -> Entry:
    return term(name, f"{_SUMS}/ram:{cii}", f"cac:LegalMonetaryTotal/cbc:{ubl}", AMOUNT)


MONEY: tuple[Entry, ...] = (
    allowance_or_charge(
        "BG-20",
        f"{SETTLEMENT}/",
        charge=False,
        terms=("BT-92", "BT-93", "BT-94", "BT-97", "BT-98"),
        taxed=("BT-95", "BT-96"),
    ),
    allowance_or_charge(
        "BG-21",
        f"{SETTLEMENT}/",
        charge=True,
        terms=("BT-99", "BT-100", "BT-101", "BT-104", "BT-105"),
        taxed=("BT-102", "BT-103"),
    ),
    _total("BT-106", "LineTotalAmount", "LineExtensionAmount"),
    _total("BT-107", "AllowanceTotalAmount", "AllowanceTotalAmount"),
    _total("BT-108", "ChargeTotalAmount", "ChargeTotalAmount"),
    _total("BT-109", "TaxBasisTotalAmount", "TaxExclusiveAmount"),
    TaxTotal("BT-110", "BT-111", currency="BT-5", accounting_currency="BT-6"),
    _total("BT-112", "GrandTotalAmount", "TaxInclusiveAmount"),
    _total("BT-113", "TotalPrepaidAmount", "PrepaidAmount"),
    _total("BT-114", "RoundingAmount", "PayableRoundingAmount"),
    _total("BT-115", "DuePayableAmount", "PayableAmount"),
    part(
        "BG-23",
        f"{SETTLEMENT}/ram:ApplicableTradeTax",
        "cac:TaxTotal/cac:TaxSubtotal",
        term("BT-116", "ram:BasisAmount", "cbc:TaxableAmount", AMOUNT),
        term("BT-117", "ram:CalculatedAmount", "cbc:TaxAmount", AMOUNT),
        *category("", "cac:TaxCategory", "BT-118", "BT-119"),
        many=True,
    ),
)
