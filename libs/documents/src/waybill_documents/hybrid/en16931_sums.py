"""Checks the sums of EN 16931 (rules BR-CO-10 to BR-CO-16) in an embedded invoice."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, localcontext
from typing import NamedTuple

from waybill_documents.checks import CheckResult
from waybill_documents.faults import DocumentRejected, FaultCode, Finding
from waybill_documents.hybrid.embedded_invoice import EmbeddedInvoice
from waybill_documents.hybrid.embedded_values import decimal_of, not_a_number
from waybill_documents.hybrid.en16931.syntaxes import path_of
from waybill_documents.hybrid.profiles import Profile
from waybill_documents.messages import DocumentMessage
from waybill_documents.values import Extracted

_NOTHING = Decimal(0)
_DIGITS = 100
"""Enough for an exact sum of the longest amounts that are read."""


class _Rule(NamedTuple):
    name: str
    path: str
    """The total that the rule is about."""
    message: DocumentMessage
    expected: Decimal | None
    """What the total should be; None if the invoice does not have the amounts that the rule needs."""


def check_embedded(embedded: EmbeddedInvoice, extracted: Extracted) -> list[CheckResult]:
    """One result for each rule. The standard rounds to two decimals and allows no difference."""
    with localcontext(prec=_DIGITS):
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

    allowances, charges = _sum_of(embedded, "BG-20", "BT-92"), _sum_of(embedded, "BG-21", "BT-99")
    yield _Rule("br_co_11", "allowances", DocumentMessage("en16931.br_co_11"), allowances)
    yield _Rule("br_co_12", "charges", DocumentMessage("en16931.br_co_12"), charges)

    total = of("line_total")
    net = None if total is None else total - or_nothing("allowances") + or_nothing("charges")
    yield _Rule("br_co_13", "net", DocumentMessage("en16931.br_co_13"), net)

    yield _Rule("br_co_14", "tax", DocumentMessage("en16931.br_co_14"), _sum_of(embedded, "BG-23", "BT-117"))

    without = of("net")
    gross = None if without is None else without + or_nothing("tax")
    yield _Rule("br_co_15", "gross", DocumentMessage("en16931.br_co_15"), gross)

    # The profile MINIMUM has neither what was paid nor the rounding, so its payable amount follows from nothing.
    whole = None if embedded.profile is Profile.MINIMUM else of("gross")
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


def _sum_of(embedded: EmbeddedInvoice, group: str, term: str) -> Decimal | None:
    """The sum of a term over all groups of that number; None if there are none."""
    found = [
        (value.text, value.at)
        for one in embedded.read.invoice.groups_of(group)
        for value in one.values_of(term)
        if value.at is not None
    ]
    total = _NOTHING
    for text, element in found:
        try:
            total += decimal_of(text)
        except ValueError:
            message, rule = not_a_number(element, text), f"embedded:{path_of(element)}"
            raise DocumentRejected(
                FaultCode.BAD_VALUE,
                DocumentMessage("embedded.unreadable_values"),
                (Finding(FaultCode.BAD_VALUE, message, rule=rule),),
            ) from None
    return total if found else None
