"""The two syntaxes of EN 16931: their namespaces and root elements."""

from __future__ import annotations

import functools
from collections import Counter
from enum import StrEnum

from lxml import etree

NAMESPACES = {
    "rsm": "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100",
    "ram": "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100",
    "udt": "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100",
    "qdt": "urn:un:unece:uncefact:data:standard:QualifiedDataType:100",
    "cac": "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2",
    "cbc": "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2",
}
_PREFIXES = {address: prefix for prefix, address in NAMESPACES.items()}
_UBL_DOCUMENT = "urn:oasis:names:specification:ubl:schema:xsd:{}-2"

CII_ROOT = f"{{{NAMESPACES['rsm']}}}CrossIndustryInvoice"
INVOICE_ROOT = f"{{{_UBL_DOCUMENT.format('Invoice')}}}Invoice"
CREDIT_NOTE_ROOT = f"{{{_UBL_DOCUMENT.format('CreditNote')}}}CreditNote"

_IN_CREDIT_NOTES = {
    "cbc:InvoiceTypeCode": "cbc:CreditNoteTypeCode",
    "cac:InvoiceLine": "cac:CreditNoteLine",
    "cbc:InvoicedQuantity": "cbc:CreditedQuantity",
}
"""The tables have the names of an Invoice; a CreditNote calls these elements differently."""


class Syntax(StrEnum):
    """A syntax of EN 16931."""

    CII = "cii"
    UBL = "ubl"


def syntax_of(root: etree._Element) -> Syntax | None:
    """The syntax of a document, or None if it is no invoice."""
    if root.tag == CII_ROOT:
        return Syntax.CII
    return Syntax.UBL if root.tag in {INVOICE_ROOT, CREDIT_NOTE_ROOT} else None


@functools.cache
def qualified(tag: str, *, credit_note: bool = False) -> str:
    """The name of an element as lxml has it: `cbc:ID` with its namespace."""
    prefix, _, name = (_IN_CREDIT_NOTES.get(tag, tag) if credit_note else tag).partition(":")
    return f"{{{NAMESPACES[prefix]}}}{name}"


def new_root(syntax: Syntax, *, credit_note: bool) -> etree._Element:
    """The root of a new document."""
    prefixes: dict[str | None, str]
    if syntax is Syntax.CII:
        prefixes = {prefix: NAMESPACES[prefix] for prefix in ("rsm", "ram", "qdt", "udt")}
        tag = CII_ROOT
    else:
        tag = CREDIT_NOTE_ROOT if credit_note else INVOICE_ROOT
        prefixes = {None: etree.QName(tag).namespace or "", "cac": NAMESPACES["cac"], "cbc": NAMESPACES["cbc"]}
    # The stubs do not know that None stands for the default namespace.
    return etree.Element(tag, nsmap=prefixes)  # type: ignore[arg-type]


def path_of(element: etree._Element) -> str:
    """The path of one element with the usual prefixes, whatever prefixes the document uses."""
    return Paths().of(element)


class Paths:
    """The paths of many elements of one document. Siblings are counted once, so a thousand paths take no longer."""

    def __init__(self) -> None:
        self._steps: dict[etree._Element, dict[etree._Element, str]] = {}

    def of(self, element: etree._Element) -> str:
        """The path of an element."""
        steps = []
        current: etree._Element | None = element
        while current is not None:
            parent = current.getparent()
            steps.append(name_of(current) if parent is None else self._below(parent)[current])
            current = parent
        return "/" + "/".join(reversed(steps))

    def _below(self, parent: etree._Element) -> dict[etree._Element, str]:
        """The step to each child."""
        if parent not in self._steps:
            children = list(parent.iterchildren("*"))
            total, seen = Counter(child.tag for child in children), Counter[object]()
            self._steps[parent] = {}
            for child in children:
                seen[child.tag] += 1
                name = name_of(child)
                self._steps[parent][child] = f"{name}[{seen[child.tag]}]" if total[child.tag] > 1 else name
        return self._steps[parent]


def name_of(element: etree._Element) -> str:
    """The name of an element with the usual prefix."""
    name = etree.QName(element)
    prefix = _PREFIXES.get(name.namespace or "", "")
    return f"{prefix}:{name.localname}" if prefix else name.localname


def text_of(element: etree._Element | None) -> str:
    """An element's text without the white space around it, and without its comments."""
    if element is None:
        return ""
    return raw_text(element).strip()


def text_at(element: etree._Element | None, attribute: str) -> str:
    """The text of an element, or of its attribute if one is named."""
    if element is None or not attribute:
        return text_of(element)
    return (element.get(attribute) or "").strip()


def raw_text(element: etree._Element) -> str:
    """An element's unchanged text. A comment does not cut it short."""
    if not len(element):
        return element.text or ""
    return (element.text or "") + "".join(child.tail or "" for child in element)


def is_leaf(element: etree._Element) -> bool:
    """Whether an element has no element inside. Comments do not count."""
    return next(element.iterchildren("*"), None) is None
