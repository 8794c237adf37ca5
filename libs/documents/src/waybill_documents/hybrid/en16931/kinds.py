"""The kinds of values: how each is read from an element, and written into one."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import NamedTuple

from lxml import etree

from waybill_documents.hybrid.en16931.model import TermValue
from waybill_documents.hybrid.en16931.source import TermSource
from waybill_documents.hybrid.en16931.syntaxes import Syntax, raw_text, text_of
from waybill_documents.hybrid.en16931.target import TermTarget

Attributes = tuple[str, ...]
Read = Callable[[TermSource, etree._Element, Attributes], TermValue | None]
Write = Callable[[TermTarget, etree._Element, TermValue], None]


class TermKind(NamedTuple):
    """Reads and writes one kind of value. Reading returns None for what is empty or unreadable."""

    read: Read
    write: Write


_CODE_LIST = re.compile(r"(list|scheme|unitCodeList|currencyCodeList)\w*")
"""Attributes of UBL that name the list of a code. EN 16931 fixes the lists, so they say nothing new."""

_DAY = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})", re.ASCII)
_INDICATORS = {"true": "true", "1": "true", "false": "false", "0": "false"}
_DAY_FORMAT = "102"


def _value(source: TermSource, element: etree._Element, text: str, attributes: Attributes) -> TermValue:
    source.used.add(element)
    source.used_attributes.update((element, name) for name in attributes)
    found = tuple((name, element.get(name) or "") for name in attributes if element.get(name))
    return TermValue(text, found, element)


def _read_text(source: TermSource, element: etree._Element, attributes: Attributes) -> TermValue | None:
    text = raw_text(element)
    return _value(source, element, text, attributes) if text.strip() else None


def _read_id(source: TermSource, element: etree._Element, attributes: Attributes) -> TermValue | None:
    text = text_of(element)
    return _value(source, element, text, attributes) if text else None


def _read_code(source: TermSource, element: etree._Element, attributes: Attributes) -> TermValue | None:
    value = _read_id(source, element, attributes)
    if value is not None and source.syntax is Syntax.UBL:
        names = (str(name) for name in element.attrib)
        source.used_attributes.update((element, name) for name in names if _CODE_LIST.fullmatch(name))
    return value


def _read_amount(source: TermSource, element: etree._Element, attributes: Attributes) -> TermValue | None:
    # UBL repeats the invoice's currency on every amount. An amount in another currency is no term of the standard.
    if (element.get("currencyID") or source.currency) != source.currency:
        return None
    value = _read_code(source, element, attributes)
    if value is not None:
        source.used_attributes.add((element, "currencyID"))
    return value


def _read_day(source: TermSource, element: etree._Element, _attributes: Attributes) -> TermValue | None:
    text = text_of(element)
    if not text:
        return None
    day = _iso_day(text, element.get("format") if source.syntax is Syntax.CII else None, source.syntax)
    if day is None:
        source.unreadable.append(("", element))
        return None
    source.used_attributes.add((element, "format"))
    return _value(source, element, day, ())


def _iso_day(text: str, style: str | None, syntax: Syntax) -> str | None:
    if syntax is Syntax.CII:
        found = _DAY.fullmatch(text)
        text = "-".join(found.groups()) if found and style == _DAY_FORMAT else ""
    try:
        return date.fromisoformat(text).isoformat() if len(text) == 10 else None
    except ValueError:
        return None


def _read_indicator(source: TermSource, element: etree._Element, _attributes: Attributes) -> TermValue | None:
    text = _INDICATORS.get(text_of(element))
    return _value(source, element, text, ()) if text else None


def _read_file(source: TermSource, element: etree._Element, attributes: Attributes) -> TermValue | None:
    # An empty attachment still has a name and a type.
    text = text_of(element)
    return _value(source, element, text, attributes) if text or any(map(element.get, attributes)) else None


def _write_text(_target: TermTarget, element: etree._Element, value: TermValue) -> None:
    element.text = value.text
    for name, text in value.attributes:
        element.set(name, text)


def _write_amount(target: TermTarget, element: etree._Element, value: TermValue) -> None:
    _write_text(target, element, value)
    if target.syntax is Syntax.UBL:
        element.set("currencyID", target.currency)


def _write_day(target: TermTarget, element: etree._Element, value: TermValue) -> None:
    if target.syntax is Syntax.UBL:
        element.text = value.text
    else:
        element.text = value.text.replace("-", "")
        element.set("format", _DAY_FORMAT)


TEXT = TermKind(_read_text, _write_text)
"""Unchanged, with its white space."""
ID = TermKind(_read_id, _write_text)
CODE = TermKind(_read_code, _write_text)
"""A code from a list that the standard fixes, or a number."""
AMOUNT = TermKind(_read_amount, _write_amount)
DAY = TermKind(_read_day, _write_day)
INDICATOR = TermKind(_read_indicator, _write_text)
FILE = TermKind(_read_file, _write_text)
