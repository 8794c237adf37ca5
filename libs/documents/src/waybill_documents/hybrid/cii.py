"""Basics of Cross Industry Invoice: its namespaces and paths, and helpers to read elements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from lxml import etree

NAMESPACES = {
    "rsm": "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100",
    "ram": "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100",
    "udt": "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100",
    "qdt": "urn:un:unece:uncefact:data:standard:QualifiedDataType:100",
}
_PREFIXES = {address: prefix for prefix, address in NAMESPACES.items()}

ROOT = f"{{{NAMESPACES['rsm']}}}CrossIndustryInvoice"

DOCUMENT = "rsm:ExchangedDocument"
TRANSACTION = "rsm:SupplyChainTradeTransaction"
AGREEMENT = f"{TRANSACTION}/ram:ApplicableHeaderTradeAgreement"
DELIVERY = f"{TRANSACTION}/ram:ApplicableHeaderTradeDelivery"
SETTLEMENT = f"{TRANSACTION}/ram:ApplicableHeaderTradeSettlement"
SUMMATION = f"{SETTLEMENT}/ram:SpecifiedTradeSettlementHeaderMonetarySummation"
LINES = f"{TRANSACTION}/ram:IncludedSupplyChainTradeLineItem"
GUIDELINE = "rsm:ExchangedDocumentContext/ram:GuidelineSpecifiedDocumentContextParameter/ram:ID"
PROCESS = "rsm:ExchangedDocumentContext/ram:BusinessProcessSpecifiedDocumentContextParameter/ram:ID"


def all_of(context: etree._Element, path: str) -> Iterator[etree._Element]:
    """The elements at a path."""
    yield from context.iterfind(path, NAMESPACES)


def first(context: etree._Element, path: str) -> etree._Element | None:
    """The first element at a path that is not empty."""
    for element in all_of(context, path):
        if len(element) or text_of(element):
            return element
    return None


def text_of(element: etree._Element | None) -> str:
    """An element's text without the white space around it."""
    return (element.text or "").strip() if element is not None else ""


_AMOUNT = re.compile(r"[-+]?(?:[0-9]{1,18}(?:\.[0-9]{0,10})?|\.[0-9]{1,10})", re.ASCII)


def decimal_of(text: str) -> Decimal:
    """A decimal as XML Schema writes it, small enough for exact sums. Raises ValueError otherwise.

    Python accepts more than that: `1e999999`, `sNaN` and `1_000` are not amounts.
    """
    if not _AMOUNT.fullmatch(text):
        raise ValueError("not an amount")
    return Decimal(text)


def path_of(element: etree._Element) -> str:
    """The path of an element with the usual prefixes, whatever prefixes the document uses."""
    steps = []
    current: etree._Element | None = element
    while current is not None:
        name = etree.QName(current)
        prefix = _PREFIXES.get(name.namespace or "", "")
        step = f"{prefix}:{name.localname}" if prefix else name.localname
        before = sum(1 for _ in current.itersiblings(current.tag, preceding=True))
        alone = not before and next(current.itersiblings(current.tag), None) is None
        steps.append(step if alone else f"{step}[{before + 1}]")
        current = current.getparent()
    return "/" + "/".join(reversed(steps))
