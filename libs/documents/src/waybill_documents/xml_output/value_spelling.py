"""Spells values for XML. The same values always give the same bytes."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Any

from waybill_documents.messages import DocumentMessage

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
"""The beginning of every document we write."""

TELLING = re.compile("[&<>\r]|[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What must be escaped, or cannot be written at all."""

_TELLING_IN_ATTRIBUTE = re.compile('[&<>"\t\n\r]|[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]')

_ESCAPED = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    # XML parsers turn a bare carriage return into a line feed, and any of these in an attribute into a space.
    "\r": "&#13;",
    "\n": "&#10;",
    "\t": "&#9;",
}


class NotForXml(ValueError):
    """The value cannot be written in XML, whatever the escaping."""

    def __init__(self, says: DocumentMessage) -> None:
        super().__init__(says.english)
        self.says = says


def spell(value: Any) -> str:
    """A value as text: decimals without exponent or negative zero, dates as ISO 8601, None as the empty text."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise NotForXml(DocumentMessage("xml.not_a_number"))
        text = str(value)  # takes half the time of `format`
        return text if value and "E" not in text else format(value if value else abs(value), "f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    raise NotForXml(DocumentMessage("xml.whole_column"))


def escape(text: str) -> str:
    """Text as the content of an element."""
    return TELLING.sub(_escaped, text) if TELLING.search(text) else text


def escape_attribute(text: str) -> str:
    """Text as the value of an attribute, without the quotes."""
    return _TELLING_IN_ATTRIBUTE.sub(_escaped, text) if _TELLING_IN_ATTRIBUTE.search(text) else text


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character not in _ESCAPED:
        raise NotForXml(DocumentMessage("xml.bad_character", code=f"U+{ord(character):04X}"))
    return _ESCAPED[character]
