"""Writes a calculation as a person would, with its values put in: `3 × 12.500,00 is 37.500,00`.

Explanations of checks are made of these. Values appear exactly and, for the sentence, as the document prints them.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any, Literal

from waybill_documents.expressions import Scope
from waybill_documents.expressions.compiler import compile_node
from waybill_documents.expressions.nodes import Call, Chain, Name, Negative, Node, TableColumn
from waybill_documents.expressions.numbers import rounded
from waybill_documents.locales import LocaleRules
from waybill_documents.messages import DocumentMessage, Shown
from waybill_documents.value_text import show
from waybill_documents.values import Scalar

_SIGNS = {"+": "+", "-": "−", "*": "×", "/": "÷"}
_SAME_VALUE = {"round", "coalesce", "number", "abs", "trim", "text"}
"""Functions whose result a reader still recognises as the value itself."""

Formula = list[str | DocumentMessage]
"""A calculation: texts as they are, and the names and sums whose words depend on the reader's language."""


def shown(value: Any, locale: LocaleRules) -> Shown:
    """A value for a sentence: texts in quotes, numbers without the digits that only a calculation leaves behind."""
    return Shown(_exact(value), _spelled(value, locale))


def _exact(value: Any) -> str | int | bool | None:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, str | int) else None


def _spelled(value: Any, locale: LocaleRules) -> str:
    if isinstance(value, str):
        return f"'{value if len(value) <= 60 else value[:59] + '…'}'"
    if isinstance(value, Decimal):
        for places in (2, 6):
            short = rounded(value, places)
            if short is not None and (short == value or places == 6) and f"{value:f}".partition(".")[2][places:]:
                return show(short, locale)
    return show(value, locale) if isinstance(value, Scalar) else ""


def single_name(node: Node) -> str | None:
    """The name of the one value that a side shows; None for a calculation."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Call) and node.function in _SAME_VALUE and isinstance(node.arguments[0], Name):
        return node.arguments[0].name
    return None


class FormulaWriter:
    """Writes the sides of comparisons, for the document or for one row of a table."""

    def __init__(self, scope: Scope, locale: LocaleRules, table: str | None) -> None:
        self._scope = scope
        self._locale = locale
        self._table = table

    def evaluated(self, node: Node) -> Any:
        return compile_node(node)(self._scope)

    def path(self, name: str) -> str:
        """A name as titles know it: a column of the row with its table."""
        return f"{self._table}.{name}" if self._table and self.is_of_row(name) else name

    def is_of_row(self, name: str) -> bool:
        return self._scope.row is not None and name in self._scope.row

    def side(self, node: Node, value: Shown) -> DocumentMessage:
        """`net is 5`, `2 × 3 is 6`, or just the value where the formula says no more."""
        name = single_name(node)
        formula: Formula = [self._named(name)] if name else self._worked(node)
        if not formula and not value.text:
            return DocumentMessage("check.side.unknown")
        if not value.text:
            return DocumentMessage("check.side.empty", formula=formula)
        if formula == [value.text]:
            return DocumentMessage("check.side.value", value=value)
        return DocumentMessage("check.side.result", formula=formula, value=value)

    def _named(self, name: str) -> DocumentMessage:
        return DocumentMessage("check.formula.value", name=self.path(name))

    def _worked(self, node: Node, within: Literal["", "sum", "product"] = "") -> Formula:
        """A calculation with its values put in: `3 × 12.500,00`."""
        match node:
            case Call(function="sum", arguments=(TableColumn() as column,)):
                return [DocumentMessage("check.formula.sum", column=column.name)]
            case Call(function="first", arguments=(TableColumn() as column,)):
                return [DocumentMessage("check.formula.first", column=column.name)]
            case Call(function="last", arguments=(TableColumn() as column,)):
                return [DocumentMessage("check.formula.last", column=column.name)]
            case Call(function="min", arguments=(TableColumn() as column,)):
                return [DocumentMessage("check.formula.smallest", column=column.name)]
            case Call(function="max", arguments=(TableColumn() as column,)):
                return [DocumentMessage("check.formula.largest", column=column.name)]
            case Call(function="count", arguments=(Name() | TableColumn() as counted,)):
                return [DocumentMessage("check.formula.count", column=counted.name)]
            case Call(function=function) if function in _SAME_VALUE - {"abs", "coalesce"}:
                return self._worked(node.arguments[0], within)
            case Negative():
                return _joined(["−", *self._worked(node.operand, "product")])
            case Chain():
                mine: Literal["sum", "product"] = "sum" if node.rest[0][0] in "+-" else "product"
                parts = self._worked(node.first, mine)
                for sign, operand in node.rest:
                    parts += [f" {_SIGNS[sign]} ", *self._worked(operand, mine)]
                if within == "product" or (within and mine == "sum"):
                    parts = ["(", *parts, ")"]
                return _joined(parts)
            case _:
                text = _spelled(self.evaluated(node), self._locale)
                return [text] if text else []


def _joined(parts: Formula) -> Formula:
    """Neighbouring texts as one, so that a calculation of values alone is a single text."""
    joined: Formula = []
    for part in parts:
        if joined and isinstance(part, str) and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined
