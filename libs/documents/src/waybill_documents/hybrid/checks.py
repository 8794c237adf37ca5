"""The sums of EN 16931 (its rules BR-CO-10 to BR-CO-16): an invoice whose totals contradict each other is at fault."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from lxml import etree

from waybill_documents.checks import CheckResult
from waybill_documents.faults import DocumentFault, FaultCode, Finding
from waybill_documents.hybrid.attachments import EmbeddedInvoice
from waybill_documents.hybrid.cii import SETTLEMENT, all_of, decimal_of, path_of, text_of
from waybill_documents.values import Extracted

_NOTHING = Decimal(0)


class _Rule(NamedTuple):
    name: str
    path: str
    """The total that the rule is about."""
    says: str
    expected: Decimal | None
    """What the total should be; None where the invoice does not say enough for the rule to apply."""


def check_embedded(embedded: EmbeddedInvoice, extracted: Extracted) -> list[CheckResult]:
    """One result for each rule. The standard rounds to two decimals and allows no difference."""
    return [_result(rule, extracted) for rule in _rules(embedded, extracted)]


def _rules(embedded: EmbeddedInvoice, extracted: Extracted) -> Iterable[_Rule]:
    def of(name: str) -> Decimal | None:
        value = extracted.fields[name].value
        return value if isinstance(value, Decimal) else None

    def or_nothing(name: str) -> Decimal:
        return of(name) or _NOTHING

    lines = [row["net"].value for row in extracted.tables["lines"]]
    amounts = [net for net in lines if isinstance(net, Decimal)]
    complete = bool(lines) and len(amounts) == len(lines)
    yield _Rule("br_co_10", "line_total", "the lines add up to {}", sum(amounts, _NOTHING) if complete else None)

    allowances, charges = _allowances(embedded, charge=False), _allowances(embedded, charge=True)
    yield _Rule("br_co_11", "allowances", "the allowances add up to {}", allowances)
    yield _Rule("br_co_12", "charges", "the charges add up to {}", charges)

    total = of("line_total")
    net = None if total is None else total - or_nothing("allowances") + or_nothing("charges")
    yield _Rule("br_co_13", "net", "the lines less allowances plus charges are {}", net)

    yield _Rule("br_co_14", "tax", "the taxes by rate add up to {}", _taxes(embedded))

    without = of("net")
    gross = None if without is None else without + or_nothing("tax")
    yield _Rule("br_co_15", "gross", "the net amount plus tax is {}", gross)

    whole = of("gross")
    payable = None if whole is None else whole - or_nothing("prepaid") + or_nothing("rounding")
    yield _Rule("br_co_16", "payable", "the gross amount less what is paid is {}", payable)


def _result(rule: _Rule, extracted: Extracted) -> CheckResult:
    stated = extracted.fields[rule.path]
    if rule.expected is None or not isinstance(stated.value, Decimal):
        return CheckResult(rule.name, passed=None, required=True)
    expected = round(rule.expected, 2)
    if expected == stated.value:
        return CheckResult(rule.name, passed=True, required=True, values=(rule.path,))
    said = rule.says.format(format(expected, "f"))
    finding = Finding(
        FaultCode.CHECK_FAILED,
        f"{said}, the invoice says {stated.value:f}",
        path=rule.path,
        rule=f"checks.{rule.name}",
        params={
            "left": format(stated.value, "f"),
            "right": format(expected, "f"),
            "difference": format(stated.value - expected, "f"),
            "standard": rule.name.upper().replace("_", "-"),
        },
    )
    looked = (rule.path,)
    return CheckResult(rule.name, passed=False, required=True, findings=(finding,), values=looked, doubted=looked)


def _allowances(embedded: EmbeddedInvoice, *, charge: bool) -> Decimal | None:
    """The sum of the document's allowances or charges, where there are any."""
    found = []
    for one in all_of(embedded.root, f"{SETTLEMENT}/ram:SpecifiedTradeAllowanceCharge"):
        indicator = next((text_of(element) for element in all_of(one, "ram:ChargeIndicator/udt:Indicator")), "")
        if (indicator in {"true", "1"}) is charge:
            found += _amounts(all_of(one, "ram:ActualAmount"))
    return sum(found, _NOTHING) if found else None


def _taxes(embedded: EmbeddedInvoice) -> Decimal | None:
    path = f"{SETTLEMENT}/ram:ApplicableTradeTax/ram:CalculatedAmount"
    found = _amounts(all_of(embedded.root, path))
    return sum(found, _NOTHING) if found else None


def _amounts(elements: Iterable[etree._Element]) -> list[Decimal]:
    found = []
    for element in elements:
        text = text_of(element)
        try:
            found += [decimal_of(text)] if text else []
        except ValueError:
            rule = f"embedded:{path_of(element)}"
            finding = Finding(FaultCode.BAD_VALUE, f"'{text[:60]}' is not a number", rule=rule)
            message = "The embedded invoice has values that cannot be read."
            raise DocumentFault(FaultCode.BAD_VALUE, message, (finding,)) from None
    return found
