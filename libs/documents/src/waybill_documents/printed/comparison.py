"""Turns the comparison of an embedded invoice with its pages into checks, and gives its values their places."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from decimal import Decimal
from itertools import islice

from waybill_documents.checks import CheckResult
from waybill_documents.confidence import DISPROVED
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.geometry import Page
from waybill_documents.messages import DocumentMessage
from waybill_documents.printed import head_values
from waybill_documents.printed.invoice_lines import columns_of, compare_column
from waybill_documents.printed.outcome import PrintedOutcome
from waybill_documents.printed.paper import Paper
from waybill_documents.values import Extracted, Scalar, Value

_CORRECTING = frozenset({"81", "83", "261", "262", "296", "308", "381", "384", "396", "420", "458", "532"})
"""Types of documents that correct another one (UNTDID 1001), and may print its number and date."""
_PLACED = (
    *("seller_name", "seller_vat_id", "seller_tax_number", "buyer_name", "buyer_vat_id", "buyer_reference"),
    *("order_reference", "currency"),
)
"""Texts that are only looked for, so that the review can show where they stand."""
_MOST_FINDINGS = 20
_MOST_PAGES = 200
"""Longer documents are compared by their first pages."""


def compare_with_pages(extracted: Extracted, accounts: Collection[str], pages: Iterable[Page]) -> list[CheckResult]:
    """One check for each value that both the invoice and a page may have. None of them is required.

    Values that are found get their places; values that are printed otherwise lose their confidence. On pages without
    text, nothing is compared.
    """
    paper = Paper(islice(pages, _MOST_PAGES))
    if paper.blank:
        return []
    results = [_result(extracted, name, outcome) for name, outcome in _head(paper, extracted)]
    if accounts:
        results.append(_account(head_values.account(paper, accounts), accounts))
    results += _lines(paper, extracted)
    for name in _PLACED:
        value = extracted.fields[name]
        place = paper.text(value.value) if isinstance(value.value, str) else None
        if place is not None:
            value.places = (place,)
    return results


def _head(paper: Paper, extracted: Extracted) -> Iterable[tuple[str, PrintedOutcome]]:
    fields = extracted.fields
    number, issued, due = (fields[name].value for name in ("number", "issue_date", "due_date"))
    if isinstance(number, str):
        others = [str(fields[name].value or "") for name in ("order_reference", "buyer_reference")]
        yield "number", head_values.number(paper, number, others)
    if isinstance(issued, date):
        corrects = fields["type_code"].value in _CORRECTING
        yield "issue_date", head_values.issue_date(paper, issued, corrects=corrects)
    if isinstance(due, date):
        yield "due_date", head_values.due_date(paper, due)
    totals = {name: each for name in head_values.TOTALS if isinstance(each := fields[name].value, Decimal)}
    yield from head_values.totals(paper, totals).items()


def _result(extracted: Extracted, name: str, outcome: PrintedOutcome) -> CheckResult:
    findings = _apply(extracted.fields[name], name, f"checks.printed.{name}", outcome)
    doubted = (name,) if outcome.passed is False else ()
    return CheckResult(f"printed.{name}", outcome.passed, False, findings, (name,), doubted)


def _apply(value: Value, path: str, rule: str, outcome: PrintedOutcome, line: int | None = None) -> tuple[Finding, ...]:
    """Give the value its place, and tell of a difference or of a value that was not found."""
    if outcome.place is not None:
        value.places = (outcome.place,)
    if outcome.passed is False:
        value.unchecked, value.confidence = value.confidence, min(value.confidence, DISPROVED)
        embedded = _shown(value.value)
        message = DocumentMessage("printed.differs", value=path, line=line, printed=outcome.says, embedded=embedded)
        return (Finding.at(outcome.place, FaultCode.PRINTED_DIFFERS, message, path, rule),)
    if outcome.passed is None and outcome.worth_a_note:
        message = DocumentMessage("printed.not_found", value=path, embedded=_shown(value.value))
        return (Finding(FaultCode.NOT_PRINTED, message, path, rule),)
    return ()


def _account(outcome: PrintedOutcome, accounts: Collection[str]) -> CheckResult:
    embedded = ", ".join(sorted(accounts))
    rule = "checks.printed.account"
    if outcome.passed is False:
        message = DocumentMessage("printed.account_differs", printed=outcome.says, embedded=embedded)
        finding = Finding.at(outcome.place, FaultCode.PRINTED_DIFFERS, message, rule=rule)
        return CheckResult("printed.account", False, False, (finding,))
    message = DocumentMessage("printed.account_not_found", embedded=embedded)
    missing = (Finding(FaultCode.NOT_PRINTED, message, rule=rule),) if outcome.passed is None else ()
    return CheckResult("printed.account", outcome.passed, False, missing)


def _lines(paper: Paper, extracted: Extracted) -> Iterable[CheckResult]:
    rows = extracted.tables["lines"]
    if not rows:
        return
    columns = columns_of(paper)
    for column, printed in (("quantity", columns.quantity), ("net", columns.net)):
        values = [value if isinstance(value := row[column].value, Decimal) else None for row in rows]
        findings: list[Finding] = []
        doubted: list[str] = []
        missing = 0
        for index, outcome in enumerate(compare_column(paper, printed, values)):
            path = f"lines[{index}].{column}"
            told = _apply(rows[index][column], path, f"checks.printed.lines_{column}", outcome, index + 1)
            if outcome.passed is False:
                findings += told
                doubted.append(path)
            missing += bool(told) and outcome.passed is None
        if missing:
            message = DocumentMessage("printed.lines_not_found", column=f"lines.{column}", count=missing)
            findings.append(Finding(FaultCode.NOT_PRINTED, message, rule=f"checks.printed.lines_{column}"))
        paths = tuple(f"lines[{index}].{column}" for index, value in enumerate(values) if value is not None)
        passed = False if doubted else None if missing or not paths else True
        yield CheckResult(
            f"printed.lines_{column}", passed, False, tuple(findings[:_MOST_FINDINGS]), paths, tuple(doubted)
        )


def _shown(value: Scalar) -> Scalar:
    return value.isoformat() if isinstance(value, date) else value
