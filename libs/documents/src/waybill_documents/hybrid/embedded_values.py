"""The values of an e-invoice. Their provenance is a path in the XML instead of a place on a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Literal, NamedTuple

from lxml import etree

from waybill_documents.faults import DocumentRejected, FaultCode, Finding
from waybill_documents.hybrid.embedded_invoice import EmbeddedInvoice
from waybill_documents.hybrid.en16931 import TermGroup
from waybill_documents.hybrid.en16931.syntaxes import name_of, path_of, raw_text, text_of
from waybill_documents.messages import DocumentMessage
from waybill_documents.values import Extracted, Row, Scalar, Value

_AMOUNT = re.compile(r"[-+]?(?:[0-9]{1,18}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})", re.ASCII)


def decimal_of(text: str) -> Decimal:
    """A decimal as XML Schema writes it, small enough for exact sums. Raises ValueError otherwise.

    Python accepts more than that: `1e999999`, `sNaN` and `1_000` are not amounts.
    """
    if not _AMOUNT.fullmatch(text):
        raise ValueError("not an amount")
    return Decimal(text)


def not_a_number(element: etree._Element, text: str) -> DocumentMessage:
    """The message for an amount that is none."""
    return DocumentMessage("embedded.not_a_number", text=text[:60], element=path_of(element))


def _text(text: str) -> str:
    return text


def _date(text: str) -> date:
    return date.fromisoformat(text)


class _Of(NamedTuple):
    """The business term of a value, below its groups, and how to read it. It may be an attribute of the term."""

    term: str
    read: Callable[[str], Scalar] = _text
    groups: tuple[str, ...] = ()
    attribute: str = ""


FIELDS = {
    "number": _Of("BT-1"),
    "type_code": _Of("BT-3"),
    "issue_date": _Of("BT-2", _date),
    "due_date": _Of("BT-9", _date),
    "currency": _Of("BT-5"),
    "buyer_reference": _Of("BT-10"),
    "order_reference": _Of("BT-13"),
    "seller_name": _Of("BT-27", groups=("BG-4",)),
    "seller_vat_id": _Of("BT-31", groups=("BG-4",)),
    "seller_tax_number": _Of("BT-32", groups=("BG-4",)),
    "buyer_name": _Of("BT-44", groups=("BG-7",)),
    "buyer_vat_id": _Of("BT-48", groups=("BG-7",)),
    "line_total": _Of("BT-106", decimal_of),
    "allowances": _Of("BT-107", decimal_of),
    "charges": _Of("BT-108", decimal_of),
    "net": _Of("BT-109", decimal_of),
    "tax": _Of("BT-110", decimal_of),
    "gross": _Of("BT-112", decimal_of),
    "prepaid": _Of("BT-113", decimal_of),
    "rounding": _Of("BT-114", decimal_of),
    "payable": _Of("BT-115", decimal_of),
}
"""Missing values are None, like empty fields."""

LINE = {
    "id": _Of("BT-126"),
    "name": _Of("BT-153"),
    "description": _Of("BT-154"),
    "seller_item_id": _Of("BT-155"),
    "quantity": _Of("BT-129", decimal_of),
    "unit": _Of("BT-129", attribute="unitCode"),
    "price": _Of("BT-146", decimal_of),
    "net": _Of("BT-131", decimal_of),
    "tax_category": _Of("BT-151"),
    "tax_rate": _Of("BT-152", decimal_of),
}


def _type(of: _Of) -> Literal["text", "decimal", "date"]:
    return "decimal" if of.read is decimal_of else "date" if of.read is _date else "text"


TYPES = {name: _type(of) for name, of in FIELDS.items()}
LINE_TYPES = {name: _type(of) for name, of in LINE.items()}
"""The types of the values, as in a mapping."""


def extract(embedded: EmbeddedInvoice) -> Extracted:
    """The invoice's fields and its `lines`. Raises DocumentRejected BAD_VALUE for values that cannot be read."""
    invoice = embedded.read.invoice
    findings = list(_unreadable_dates(embedded))
    fields = {name: _field(invoice, of, name, findings) for name, of in FIELDS.items()}
    lines: list[Row] = []
    for index, line in enumerate(invoice.groups_of("BG-25")):
        # The path of a line is counted here, because path_of would walk through all previous lines for every value.
        place = _line_place(line, index)
        row = {}
        for name, of in LINE.items():
            row[name] = _value(line, of, f"lines[{index}].{name}", findings, place)
        lines.append(row)
    if findings:
        raise DocumentRejected(FaultCode.BAD_VALUE, DocumentMessage("embedded.unreadable_values"), tuple(findings[:20]))
    return Extracted(fields, {"lines": lines})


def accounts_of(embedded: EmbeddedInvoice) -> tuple[str, ...]:
    """The accounts to which the invoice can be paid."""
    found = (means.text("BT-84") for means in embedded.read.invoice.groups_of("BG-16"))
    return tuple(dict.fromkeys(number for number in found if number))


def _unreadable_dates(embedded: EmbeddedInvoice) -> list[Finding]:
    names = {of.term: name for name, of in FIELDS.items() if of.read is _date}
    return [
        Finding(
            FaultCode.BAD_VALUE,
            DocumentMessage("embedded.not_a_date", text=text_of(element)[:60], element=path_of(element)),
            path=names[term],
            rule=f"embedded:{path_of(element)}",
        )
        for term, element in embedded.read.unreadable
        if term in names
    ]


def _field(invoice: TermGroup, of: _Of, name: str, findings: list[Finding]) -> Value:
    group = invoice
    for step in of.groups:
        group = next(group.groups_of(step), TermGroup())
    return _value(group, of, name, findings)


def _line_place(line: TermGroup, index: int) -> str:
    element = line.at
    parent = element.getparent() if element is not None else None
    if element is None or parent is None:
        return ""
    above = path_of(parent)
    alone = index == 0 and next(element.itersiblings(element.tag), None) is None
    return f"{above}/{name_of(element)}" + ("" if alone else f"[{index + 1}]")


def _value(group: TermGroup, of: _Of, name: str, findings: list[Finding], above: str = "") -> Value:
    found = group.value(of.term)
    element = found.at if found else None
    if found is None or element is None:
        return Value(None, "", f"embedded:{of.term}")
    raw = (element.get(of.attribute) or "") if of.attribute else raw_text(element)
    text = found.attribute(of.attribute) if of.attribute else found.text.strip()
    place = _below(group, element, above) if above else path_of(element)
    place += f"/@{of.attribute}" if of.attribute else ""
    try:
        value = of.read(text) if text else None
    except ValueError:
        message = not_a_number(element, text)
        findings.append(Finding(FaultCode.BAD_VALUE, message, path=name, rule=f"embedded:{place}"))
        value = None
    return Value(value, raw, f"embedded:{place}")


def _below(group: TermGroup, element: etree._Element, above: str) -> str:
    steps: list[str] = []
    current: etree._Element | None = element
    while current is not None and current is not group.at:
        steps.append(name_of(current))
        current = current.getparent()
    return "/".join([above, *reversed(steps)])
