"""Writes the model in either syntax, in the order of its schema."""

from __future__ import annotations

from lxml import etree

from waybill_documents.hybrid.en16931.document_terms import INVOICE
from waybill_documents.hybrid.en16931.model import TermGroup, TermValue
from waybill_documents.hybrid.en16931.party_terms import DELIVERY
from waybill_documents.hybrid.en16931.paths import path
from waybill_documents.hybrid.en16931.schema_order import put_in_order
from waybill_documents.hybrid.en16931.syntaxes import Syntax, new_root
from waybill_documents.hybrid.en16931.target import TermTarget

_CREDIT_NOTES = frozenset({"81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "532"})
"""The document types (UNTDID 1001) that EN 16931 writes as a UBL CreditNote; all others are an Invoice."""


def write(invoice: TermGroup, syntax: Syntax) -> tuple[etree._Element, list[TermValue]]:
    """The document, and the values that this syntax has no place for."""
    root = new_root(syntax, credit_note=syntax is Syntax.UBL and invoice.text("BT-3") in _CREDIT_NOTES)
    target = TermTarget(root, syntax, invoice.text("BT-5"))
    if syntax is Syntax.CII:
        target.place(root, path(DELIVERY), new=False)  # required even if there is nothing to say
    for entry in INVOICE:
        entry.write(target, root, invoice)
    put_in_order(root, syntax)
    return root, target.lost
