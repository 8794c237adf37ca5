"""What a value of a record is called, and how the document would print it."""

from __future__ import annotations

import re
from typing import Any

from waybill.web.languages import Language
from waybill_documents.corrections.scalars import scalar
from waybill_documents.locales import locale_rules
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping.model import TableRule, ValueType
from waybill_documents.messages import describe, readable
from waybill_documents.value_text import show

_TEXT: ValueType = "text"
_AMOUNT = re.compile(r"-?[0-9]+\.[0-9]+", re.ASCII)


def label(loaded: LoadedMapping | None, path: str, language: Language) -> str:
    """The name of a value with its line: `Amount, line 4`."""
    name = describe(loaded, path, language.code) if loaded is not None else readable(path)
    index = path.partition("[")[2].partition("]")[0]
    return language.say("convert.review_page.of_line", label=name, number=int(index) + 1) if index.isdigit() else name


def printed(loaded: LoadedMapping | None, path: str, value: Any) -> str:
    """A changed value, as the document would print it."""
    if value is None:
        return ""
    if loaded is None:
        return str(value)
    type_ = _type_of(loaded, path)
    if type_ is None:  # it was computed, so it is usually an amount
        type_ = "decimal" if isinstance(value, str) and _AMOUNT.fullmatch(value) else "text"
    return show(scalar(value, type_, path) if isinstance(value, str) else value, locale_rules(loaded.mapping.locale))


def _type_of(loaded: LoadedMapping, path: str) -> ValueType | None:
    head, bracket, rest = path.partition("[")
    if bracket:
        return column_types(loaded.mapping.tables.get(head)).get(rest.partition("].")[2])
    rule = loaded.mapping.fields.get(head)
    return rule.type if rule is not None else None


def column_types(rule: TableRule | None) -> dict[str, ValueType]:
    """The types of the columns that can be corrected."""
    if rule is None:
        return {}
    return dict.fromkeys(rule.notes, _TEXT) | {name: each.type for name, each in rule.columns.items()}
