"""Tax categories, allowances and charges: the same shape for the document and for a line."""

from __future__ import annotations

from waybill_documents.hybrid.cii import first
from waybill_documents.hybrid.ubl.words import Context, Conversion, Elements, Part, amount, code, group, made, text


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


def indicator(conversion: Conversion, context: Context) -> Elements:
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
