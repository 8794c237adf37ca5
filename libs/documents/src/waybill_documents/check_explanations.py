"""Why a check does not hold, in a sentence for a clerk. `checking.py` decides; this only puts it in words.

The sentences are English; `params` has their parts, shown in the document's locale, and `kind` says which sentence it
is, so that a page can say it in another language.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from waybill_documents.expressions import Comparison, Scope
from waybill_documents.expressions.compiler import compile_node
from waybill_documents.expressions.expression import sides
from waybill_documents.expressions.nodes import (
    Both,
    Call,
    Chain,
    Column,
    Compare,
    Constant,
    Name,
    Negative,
    Node,
    Not,
    walk,
)
from waybill_documents.expressions.numbers import rounded, subtract
from waybill_documents.expressions.texts import as_number, empty
from waybill_documents.locales import LocaleRules
from waybill_documents.value_text import show
from waybill_documents.values import Scalar
from waybill_documents.words import Place

_SHOULD = {
    "==": "should be",
    "!=": "should not be",
    "<": "should be less than",
    "<=": "should be at most",
    ">": "should be more than",
    ">=": "should be at least",
}
_SIGNS = {"+": "+", "-": "−", "*": "×", "/": "÷"}
_OF_A_COLUMN = {"sum": "sum", "first": "first", "last": "last", "min": "smallest", "max": "largest"}
_SAME_VALUE = {"round", "coalesce", "number", "abs", "trim", "text"}
"""Functions that leave a value what it is for a reader."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One sentence, what it was made from, and the name or cell it is about."""

    message: str
    kind: str
    about: tuple[str, ...] = ()
    """Names as in expressions, the most telling one first; `lines[3].no` for a cell."""
    params: dict[str, Any] = field(default_factory=dict)
    place: Place | None = None
    """Where to look, if that is not where the names are."""


def reasons(tree: Node, scope: Scope, locale: LocaleRules) -> Iterator[Reason]:
    """Every part of an expression that does not hold, if it is made of parts that all must.

    Sums carried over are only named here: `checking.py` knows them and tells what is wrong with each.
    """
    match tree:
        case Both():
            for part in tree.parts:
                if compile_node(part)(scope) is not True:
                    yield from reasons(part, scope, locale)
        case Call(function="if"):
            chosen = tree.arguments[1 if compile_node(tree.arguments[0])(scope) is True else 2]
            yield from reasons(chosen, scope, locale)
        case Compare():
            if comparison := sides(tree, scope):
                yield _comparison(comparison, scope, locale)
        case Call(function="running", arguments=(Column() as column,)):
            yield from _gaps(column, scope)
        case Call(function="unique", arguments=(Column() as column,)):
            yield from _repeated(column, scope, locale)
        case Call(function="carried", arguments=(Constant() as table,)):
            yield Reason("", "carried", (str(table.value),))
        case Not(operand=Call(function="empty", arguments=(Name() as name,))):
            yield _absent([name.name])
        case _:
            absent = _absent_names(tree, scope)
            yield _absent(absent) if absent else Reason("", "other", tuple(_names(tree)))


def label(name: str) -> str:
    """A name as words: `net_total` is net total, `lines.amount` is amount."""
    return name.rpartition(".")[2].replace("_", " ")


def shown(value: Any, locale: LocaleRules) -> str:
    """A value in a sentence: texts in quotes, numbers without the noise that a calculation leaves behind them."""
    if isinstance(value, str):
        return f"'{value if len(value) <= 60 else value[:59] + '…'}'"
    if isinstance(value, Decimal):
        for places in (2, 6):
            short = rounded(value, places)
            if short is not None and (short == value or places == 6) and f"{value:f}".partition(".")[2][places:]:
                return show(short, locale)
    return show(value, locale) if isinstance(value, Scalar) else ""


def _names(tree: Node) -> list[str]:
    return [part.name for part in walk(tree) if isinstance(part, Name | Column)]


def _absent_names(tree: Node, scope: Scope) -> list[str]:
    values = [(part.name, compile_node(part)(scope)) for part in walk(tree) if isinstance(part, Name)]
    return [name for name, value in values if empty(value)]


def _absent(names: list[str]) -> Reason:
    labels = [label(name) for name in dict.fromkeys(names)]
    return Reason(f"there is no {' and no '.join(labels)}", "missing", tuple(names), {"missing": labels})


def _comparison(found: Comparison, scope: Scope, locale: LocaleRules) -> Reason:
    tree = found.tree
    absent = _absent_names(tree, scope)
    if found.holds is None and absent:
        return _absent(absent)
    left, right = shown(found.left, locale), shown(found.right, locale)
    left_name, right_name = _single(tree.left), _single(tree.right)
    about = tuple(name for name in (right_name, left_name) if name) or tuple(_names(tree))
    params: dict[str, Any] = {"left": left, "right": right, "operator": found.operator}
    apart = subtract(found.left, found.right)
    if apart is not None:
        params["difference"] = shown(apart.copy_abs(), locale)
    if found.tolerance is not None:
        params["tolerance"] = shown(found.tolerance, locale)
    if found.operator != "==" or isinstance(tree.right, Constant) or isinstance(tree.left, Constant):
        if isinstance(tree.left, Constant):
            params["sides"] = [None, _called(tree.right, scope, locale)]
            message = f"{_side(tree.right, right, scope, locale)}, which does not fit {left}"
        else:
            params["sides"] = [_called(tree.left, scope, locale), label(right_name) if right_name else None]
            object_ = f"{label(right_name)}, {right}" if right_name else right
            message = f"{_side(tree.left, left, scope, locale)}, it {_SHOULD[found.operator]} {object_}"
        return Reason(message, "comparison", about, params)
    if right_name and not left_name:
        return _against(tree.left, left, right_name, right, about, params, scope, locale)
    if left_name and not right_name:
        return _against(tree.right, right, left_name, left, about, params, scope, locale)
    params["sides"] = [_called(tree.left, scope, locale), _called(tree.right, scope, locale)]
    message = f"{_side(tree.left, left, scope, locale)}, but {_side(tree.right, right, scope, locale)}"
    return Reason(message, "comparison", about, params)


def _against(
    calculated: Node,
    result: str,
    name: str,
    printed: str,
    about: tuple[str, ...],
    params: dict[str, Any],
    scope: Scope,
    locale: LocaleRules,
) -> Reason:
    """What was calculated against what is printed; in a row the line says where, elsewhere the name does."""
    in_row = scope.row is not None and name in scope.row
    says = printed if in_row else f"{label(name)} {printed}"
    formula = worked(calculated, scope, locale)
    kind = "sum" if isinstance(calculated, Call) and calculated.function == "sum" else "calculation"
    return Reason(
        f"{_side(calculated, result, scope, locale)}, the invoice says {says}",
        kind,
        about,
        params | {"formula": formula, "result": result, "name": label(name), "printed": printed},
    )


def _side(node: Node, value: str, scope: Scope, locale: LocaleRules) -> str:
    """`net is 5`, `2 × 3 is 6`, or just the value where there is no more to say."""
    formula = _called(node, scope, locale)
    if not value:
        return f"{formula or 'one side'} has no value"
    return f"{formula} is {value}" if formula != value else f"the value is {value}"


def _called(node: Node, scope: Scope, locale: LocaleRules) -> str:
    """What a side is: the name of a value, or the calculation."""
    name = _single(node)
    return label(name) if name else worked(node, scope, locale)


def _single(node: Node) -> str | None:
    """The one name a side is, if it is one."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Call) and node.function in _SAME_VALUE and isinstance(node.arguments[0], Name):
        return node.arguments[0].name
    return None


def worked(node: Node, scope: Scope, locale: LocaleRules, within: Literal["", "sum", "product"] = "") -> str:
    """A calculation with its values put in: `3 × 12.500,00`."""
    match node:
        case Call(function=function, arguments=(Column() as column,)) if function in _OF_A_COLUMN:
            of = " of" if function == "sum" else ""
            return f"the {_OF_A_COLUMN[function]}{of} {label(column.name)}"
        case Call(function="count", arguments=(Name() | Column() as counted,)):
            return f"the number of {label(counted.name)}"
        case Call(function=function) if function in _SAME_VALUE - {"abs", "coalesce"}:
            return worked(node.arguments[0], scope, locale, within)
        case Negative():
            return f"−{worked(node.operand, scope, locale, 'product')}"
        case Chain():
            mine: Literal["sum", "product"] = "sum" if node.rest[0][0] in "+-" else "product"
            parts = [worked(node.first, scope, locale, mine)]
            for sign, operand in node.rest:
                parts += [_SIGNS[sign], worked(operand, scope, locale, mine)]
            formula = " ".join(parts)
            return f"({formula})" if within == "product" or (within and mine == "sum") else formula
        case _:
            return shown(compile_node(node)(scope), locale)


def _gaps(column: Column, scope: Scope) -> Iterator[Reason]:
    """Where running numbers do not go on by one."""
    values = scope.column(column.table, column.column)
    last = Decimal(0)
    found = False
    for index, value in enumerate(values):
        if empty(value):
            continue
        found = True
        here = as_number(value)
        if here != last + 1:
            about = (f"{column.table}[{index}].{column.column}",)
            params = {"after": f"{last:f}", "found": str(value)[:60], "line": index + 1}
            if here is None:
                message = f"line {index + 1}: {label(column.name)} is {str(value)[:60]!r}, which is not a number"
            elif last == 0:
                message = f"the running numbers begin with {here:f}, not with 1"
            elif here > last + 1:
                message = f"the running numbers have a gap after {last:f}: {here:f}"
            else:
                message = f"the running numbers go back after {last:f}: {here:f}"
            yield Reason(message, "gap", about, params)
        last = last + 1 if here is None else here
    if not found:
        yield Reason(f"no line has a {label(column.name)}", "missing", (), {"missing": [label(column.name)]})


def _repeated(column: Column, scope: Scope, locale: LocaleRules) -> Iterator[Reason]:
    """Values that stand in a column again."""
    seen: dict[Any, int] = {}
    for index, value in enumerate(scope.column(column.table, column.column)):
        if empty(value):
            continue
        first = seen.setdefault(value, index)
        if first != index:
            text = shown(value, locale)
            yield Reason(
                f"{label(column.name)} {text} stands in line {first + 1} and again in line {index + 1}",
                "repeated",
                (f"{column.table}[{index}].{column.column}",),
                {"value": text, "first": first + 1, "line": index + 1},
            )
