"""Turns plain JSON back into typed values, by the types of the mapping. Strict, because we wrote the record."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Any

from waybill_documents.expressions.numbers import MOST_DIGITS
from waybill_documents.faults import MappingFault
from waybill_documents.mapping.model import ValueType
from waybill_documents.messages import DocumentMessage
from waybill_documents.values import Scalar

LONGEST_TEXT = 100_000

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def scalar(given: Any, type_: ValueType, path: str) -> Scalar:
    """The value of plain JSON. Raises `MappingFault` when it is not of that type."""
    if given is None:
        return None
    if type_ == "integer":
        if isinstance(given, int) and not isinstance(given, bool):
            return given
    elif isinstance(given, str) and len(given) <= LONGEST_TEXT:
        if type_ in ("text", "digits"):
            return given
        if type_ == "decimal" and len(given) <= MOST_DIGITS + 2 and _NUMBER.fullmatch(given):
            return Decimal(given)
        if type_ == "date" and _DAY.fullmatch(given):
            try:
                return date.fromisoformat(given)
            except ValueError:
                pass
    raise MappingFault(DocumentMessage("record.wrong_type", type=type_), path)
