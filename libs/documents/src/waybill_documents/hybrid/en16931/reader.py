"""Reads a document of either syntax into the model."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import islice

from lxml import etree

from waybill_documents.hybrid.en16931.document_terms import INVOICE
from waybill_documents.hybrid.en16931.model import TermGroup, TermValue
from waybill_documents.hybrid.en16931.payment_entries import UNDEFINED_MEANS
from waybill_documents.hybrid.en16931.payment_terms import TAX_TYPE
from waybill_documents.hybrid.en16931.source import TermSource
from waybill_documents.hybrid.en16931.syntaxes import Paths, Syntax, qualified, text_of

_MOST_DETAILS = 1_000
"""More details of one invoice help nobody, and a hostile one may have a million."""

_CURRENCY = {
    Syntax.CII: ("rsm:SupplyChainTradeTransaction", "ram:ApplicableHeaderTradeSettlement", "ram:InvoiceCurrencyCode"),
    Syntax.UBL: ("cbc:DocumentCurrencyCode",),
}


@dataclass(frozen=True, slots=True)
class Detail:
    """A detail of a document that has no place in the model."""

    path: str
    value: str


@dataclass(frozen=True, slots=True)
class Read:
    """A document as the model has it."""

    invoice: TermGroup
    left_over: tuple[Detail, ...]
    """What the model cannot hold: the first thousand details."""
    more_left_over: int
    """How many there are beside those."""
    fillers: tuple[Detail, ...]
    """What only the syntax demands: its loss changes no business term."""
    unreadable: tuple[tuple[str, etree._Element], ...]
    """Values that cannot be read, by their term. They are left over, too."""


def read(root: etree._Element, syntax: Syntax) -> Read:
    """Everything that a document says."""
    source = TermSource(root, syntax, _currency(root, syntax))
    invoice = TermGroup(root)
    for entry in INVOICE:
        entry.read(source, root, invoice)
    _settle(invoice, source)
    left = source.left_over()
    paths = Paths()
    details = tuple(
        Detail(paths.of(element) + (f"/@{attribute}" if attribute else ""), value)
        for element, attribute, value in islice(left, _MOST_DETAILS)
    )
    fillers = tuple(Detail(paths.of(one), text_of(one)) for one in source.fillers[:_MOST_DETAILS])
    return Read(invoice, details, sum(1 for _ in left), fillers, tuple(source.unreadable))


def _currency(root: etree._Element, syntax: Syntax) -> str:
    element: etree._Element | None = root
    for tag in _CURRENCY[syntax]:
        element = next(element.iterchildren(qualified(tag)), None) if element is not None else None
    return text_of(element)


def _settle(invoice: TermGroup, source: TermSource) -> None:
    """Make equal what says the same: values that follow from others, and values that say nothing."""
    if invoice.text("BT-6") == invoice.text("BT-5"):
        invoice.pop("BT-6", None)
    if invoice.text("BT-13") == "NA" and "BT-14" in invoice:
        del invoice["BT-13"]
    means = [one for one in invoice.groups_of("BG-16") if set(one) != {"BT-81"} or one.text("BT-81") != UNDEFINED_MEANS]
    if means:
        invoice["BG-16"] = [*means]
    else:
        invoice.pop("BG-16", None)
    for tax in invoice.groups_of("BG-23"):
        _name_tax(tax, "BT-118")
    for group, code in (("BG-20", "BT-95"), ("BG-21", "BT-102")):
        for one in invoice.groups_of(group):
            _name_tax(one, code)
    for line in invoice.groups_of("BG-25"):
        _name_tax(line, "BT-151")
        _settle_price(line, source)
    _settle_tax_total(invoice)


def _name_tax(group: TermGroup, code: str) -> None:
    if code in group and TAX_TYPE not in group:
        group.add(TAX_TYPE, TermValue("VAT"))


def _settle_price(line: TermGroup, source: TermSource) -> None:
    """BT-146 = BT-148 - BT-147. UBL has a gross price only with a discount, CII a discount only in a gross price."""
    net, discount, gross = (_number(line, term) for term in ("BT-146", "BT-147", "BT-148"))
    if "BT-148" in line and "BT-147" not in line:
        if net is not None and gross is not None and gross >= net:
            line.add("BT-147", TermValue(format(gross - net, "f")))
        else:  # a gross price below the net price is a surcharge, which the core does not have
            source.used.difference_update(value.at for value in line.values_of("BT-148") if value.at is not None)
            del line["BT-148"]
    elif net is not None and discount is not None and "BT-148" not in line:
        line.add("BT-148", TermValue(format(net + discount, "f")))


def _settle_tax_total(invoice: TermGroup) -> None:
    """The total tax may be missing, as in an invoice outside the scope of VAT, but UBL requires it."""
    if "BT-110" in invoice or "BG-23" not in invoice:
        return
    taxes = [_number(tax, "BT-117") or Decimal(0) for tax in invoice.groups_of("BG-23")]
    invoice.add("BT-110", TermValue(format(sum(taxes, Decimal("0.00")), "f")))


def _number(group: TermGroup, term: str) -> Decimal | None:
    try:
        number = Decimal(group.text(term))
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 100 else None
