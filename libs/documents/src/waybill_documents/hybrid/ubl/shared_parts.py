"""Parts that a document and its lines have in common: tax categories, allowances, charges and the invoiced object."""

from __future__ import annotations

from waybill_documents.hybrid.cii import first
from waybill_documents.hybrid.ubl.parts import (
    Context,
    Elements,
    Part,
    UblConversion,
    amount,
    code,
    fixed,
    group,
    made,
    text,
)


def _scheme(path: str) -> Part:
    return group("cac:TaxScheme", code("cbc:ID", f"{path}ram:TypeCode"))


def category(tag: str, at: str | None = None) -> Part:
    return group(
        tag,
        code("cbc:ID", "ram:CategoryCode"),
        code("cbc:Percent", "ram:RateApplicablePercent"),
        code("cbc:TaxExemptionReasonCode", "ram:ExemptionReasonCode"),
        text("cbc:TaxExemptionReason", "ram:ExemptionReason"),
        _scheme(""),
        at=at,
    )


def indicator(conversion: UblConversion, context: Context) -> Elements:
    shown = conversion.token(first(context, "ram:ChargeIndicator/udt:Indicator"))
    if shown:
        yield made("cbc:ChargeIndicator", {"1": "true", "0": "false"}.get(shown, shown))


ALLOWANCE: tuple[Part, ...] = (  # BG-20, BG-21, BG-27, BG-28
    indicator,
    code("cbc:AllowanceChargeReasonCode", "ram:ReasonCode"),
    text("cbc:AllowanceChargeReason", "ram:Reason"),
    code("cbc:MultiplierFactorNumeric", "ram:CalculationPercent"),
    amount("cbc:Amount", "ram:ActualAmount"),
    amount("cbc:BaseAmount", "ram:BasisAmount"),
)

_OBJECT: tuple[Part, ...] = (
    code("cbc:ID", "ram:IssuerAssignedID"),
    fixed("cbc:DocumentTypeCode", "130"),
)


def invoiced_object(tag: str) -> Part:
    """The object that is invoiced, with the scheme of its number: BT-18 for the document, BT-128 for a line."""
    plain = group(tag, *_OBJECT)

    def part(conversion: UblConversion, context: Context) -> Elements:
        for reference in plain(conversion, context):
            scheme = conversion.token(first(context, "ram:ReferenceTypeCode"))
            if scheme:
                reference[0].set("schemeID", scheme)
            yield reference

    return part
