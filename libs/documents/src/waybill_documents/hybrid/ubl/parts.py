"""The building blocks of the tables in this folder, and the record of what they used of the source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from lxml import etree

from waybill_documents.hybrid.cii import all_of, first, text_of

_CAC = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
_CBC = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"
NAMESPACES = {"cac": _CAC, "cbc": _CBC}
_XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")

Context = etree._Element
Elements = Iterator[etree._Element]
Part = Callable[["UblConversion", Context], Elements]
"""An entry of a table: makes UBL elements from a place in the source."""

SCHEME = {"schemeID": "schemeID"}
"""Attributes for an identifier whose scheme is copied."""


@dataclass(slots=True)
class UblConversion:
    """The conversion of one invoice. It records what was used of the source."""

    root: etree._Element
    currency: str
    credit_note: bool
    used: set[etree._Element] = field(default_factory=set)
    used_attributes: set[tuple[etree._Element, str]] = field(default_factory=set)

    def take(self, element: etree._Element, *attributes: str) -> str:
        """The unchanged text of an element. The element and these attributes count as used."""
        self.used.add(element)
        self.used_attributes.update((element, name) for name in attributes)
        return element.text or ""

    def token(self, element: etree._Element | None, *attributes: str) -> str:
        """The same for codes, numbers and names, without the white space around them."""
        return self.take(element, *attributes).strip() if element is not None else ""

    def left_over(self) -> Iterator[tuple[etree._Element, str, str]]:
        """Every element with an unused value or attribute, with the attribute's name and the value."""
        for element in self.root.iter("*"):
            if not len(element) and text_of(element) and element not in self.used:
                yield element, "", text_of(element)
                continue
            for name, value in element.attrib.items():
                attribute = str(name)
                if value and not attribute.startswith(_XSI) and (element, attribute) not in self.used_attributes:
                    yield element, etree.QName(attribute).localname, str(value)


def made(tag: str, text: str | None = None, **attributes: str) -> etree._Element:
    """A UBL element, as in `cbc:ID`."""
    prefix, _, name = tag.partition(":")
    element = etree.Element(f"{{{NAMESPACES[prefix]}}}{name}", attributes)
    element.text = text
    return element


def fixed(tag: str, text: str) -> Part:
    """An element with a constant text. A group with nothing else in it is left out."""

    def part(_conversion: UblConversion, _context: Context) -> Elements:
        yield made(tag, text)

    part.fixed = True  # type: ignore[attr-defined]
    return part


def text(tag: str, path: str, **attributes: str) -> Part:
    """An unchanged text. `schemeID="schemeID"` maps an attribute of UBL to one of the source."""

    def part(conversion: UblConversion, context: Context) -> Elements:
        element = first(context, path)
        if element is not None:
            found = {ours: element.get(theirs, "") for ours, theirs in attributes.items()}
            body = conversion.take(element, *attributes.values())
            yield made(tag, body, **{name: value for name, value in found.items() if value})

    return part


def code(tag: str, path: str, **attributes: str) -> Part:
    """A code, a number or an identifier: a text without the white space around it."""
    plain = text(tag, path, **attributes)

    def part(conversion: UblConversion, context: Context) -> Elements:
        for element in plain(conversion, context):
            element.text = (element.text or "").strip()
            yield element

    return part


def amount(tag: str, path: str) -> Part:
    """An amount in the invoice's currency, which UBL repeats on every amount."""

    def part(conversion: UblConversion, context: Context) -> Elements:
        element = first(context, path)
        if element is not None and element.get("currencyID", conversion.currency) == conversion.currency:
            yield made(tag, conversion.token(element, "currencyID"), currencyID=conversion.currency)

    return part


def day(tag: str, path: str) -> Part:
    """A date in format 102, whatever its element is called. Other formats stay unused and are therefore refused."""

    def part(conversion: UblConversion, context: Context) -> Elements:
        holder = first(context, path)
        shown = read_day(conversion, holder[0]) if holder is not None and len(holder) else None
        if shown:
            yield made(tag, shown)

    return part


def read_day(conversion: UblConversion, element: etree._Element) -> str | None:
    """The date of a DateTimeString, as ISO 8601."""
    if element.get("format") != "102":
        return None
    try:
        shown = datetime.strptime(text_of(element), "%Y%m%d").date().isoformat()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        return None
    conversion.take(element, "format")
    return shown


def group(tag: str, *parts: Part, at: str | None = None, each: str | None = None) -> Part:
    """An element with children, made at a place or for each of several places. It is left out when it is empty."""

    def part(conversion: UblConversion, context: Context) -> Elements:
        for place in places(context, at, each):
            result = made(tag)
            filled = False
            for inner in parts:
                before = len(result)
                result.extend(inner(conversion, place))
                filled |= len(result) > before and not hasattr(inner, "fixed")
            if filled:
                yield result

    return part


def places(context: Context, at: str | None, each: str | None) -> Iterator[Context]:
    """The places at which a group is made."""
    if each is not None:
        yield from all_of(context, each)
    elif at is not None:
        place = first(context, at)
        if place is not None:
            yield place
    else:
        yield context


def is_number(text: str) -> bool:
    """Whether it is an XSD decimal."""
    return _DECIMAL.fullmatch(text) is not None


def period(at: str) -> tuple[Part, ...]:
    """The first and the last day of a period."""
    return (day("cbc:StartDate", f"{at}/ram:StartDateTime"), day("cbc:EndDate", f"{at}/ram:EndDateTime"))
