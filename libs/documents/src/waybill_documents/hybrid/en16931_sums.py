"""Checks the sums of EN 16931 (rules BR-CO-10 to BR-CO-16) in an embedded invoice."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from lxml import etree

from waybill_documents.checks import CheckResult
from waybill_documents.faults import DocumentRejected, FaultCode, Finding
from waybill_documents.hybrid.attachments import EmbeddedInvoice
from waybill_documents.hybrid.cii import SETTLEMENT, all_of, decimal_of, path_of, text_of
from waybill_documents.messages import DocumentMessage
from waybill_documents.values import Extracted

_NOTHING = Decimal(0)


class _Rule(NamedTuple):
    name: str
    path: str
    """The total that the rule is about."""
    message: DocumentMessage
    expected: Decimal | None
    """What the total should be; None if the invoice does not have the amounts that the rule needs."""


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
    sum_of_lines = sum(amounts, _NOTHING) if complete else None
    yield _Rule("br_co_10", "line_total", DocumentMessage("en16931.br_co_10"), sum_of_lines)

    allowances, charges = _allowances(embedded, charge=False), _allowances(embedded, charge=True)
    yield _Rule("br_co_11", "allowances", DocumentMessage("en16931.br_co_11"), allowances)
    yield _Rule("br_co_12", "charges", DocumentMessage("en16931.br_co_12"), charges)

    total = of("line_total")
    net = None if total is None else total - or_nothing("allowances") + or_nothing("charges")
    yield _Rule("br_co_13", "net", DocumentMessage("en16931.br_co_13"), net)

    yield _Rule("br_co_14", "tax", DocumentMessage("en16931.br_co_14"), _taxes(embedded))

    without = of("net")
    gross = None if without is None else without + or_nothing("tax")
    yield _Rule("br_co_15", "gross", DocumentMessage("en16931.br_co_15"), gross)

    whole = of("gross")
    payable = None if whole is None else whole - or_nothing("prepaid") + or_nothing("rounding")
    yield _Rule("br_co_16", "payable", DocumentMessage("en16931.br_co_16"), payable)


def _result(rule: _Rule, extracted: Extracted) -> CheckResult:
    stated = extracted.fields[rule.path]
    if rule.expected is None or not isinstance(stated.value, Decimal):
        return CheckResult(rule.name, passed=None, required=True)
    expected = round(rule.expected, 2)
    if expected == stated.value:
        return CheckResult(rule.name, passed=True, required=True, values=(rule.path,))
    message = rule.message.adding(
        left=stated.value,
        right=expected,
        difference=stated.value - expected,
        standard=rule.name.upper().replace("_", "-"),
    )
    finding = Finding(FaultCode.CHECK_FAILED, message, rule.path, f"checks.{rule.name}")
    looked = (rule.path,)
    return CheckResult(rule.name, passed=False, required=True, findings=(finding,), values=looked, doubted=looked)


def _allowances(embedded: EmbeddedInvoice, *, charge: bool) -> Decimal | None:
    """The sum of the document's allowances or charges; None if there are none."""
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
            message = DocumentMessage("embedded.not_a_number", text=text[:60])
            finding = Finding(FaultCode.BAD_VALUE, message, rule=f"embedded:{path_of(element)}")
            raise DocumentRejected(
                FaultCode.BAD_VALUE, DocumentMessage("embedded.unreadable_values"), (finding,)
            ) from None
    return found
