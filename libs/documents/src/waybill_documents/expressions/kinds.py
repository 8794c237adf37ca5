"""Works out, without a document, what kind of value an expression gives.

Evaluating never fails: the sum of a number and a text is just empty. The person who writes a mapping should hear about
it when the mapping is loaded, and not wonder later why a value is missing or a check never applies.
"""

from __future__ import annotations

from collections.abc import Mapping

from waybill_documents.expressions.functions import FUNCTIONS, Kind
from waybill_documents.expressions.nodes import (
    Both,
    Call,
    Chain,
    Compare,
    Constant,
    Either,
    Name,
    Negative,
    Node,
    Not,
    TableColumn,
)
from waybill_documents.expressions.tokens import ExpressionError
from waybill_documents.messages import DocumentMessage

_NAMES = {
    Kind.NUMBER: DocumentMessage("expression.kind.number"),
    Kind.TEXT: DocumentMessage("expression.kind.text"),
    Kind.DATE: DocumentMessage("expression.kind.date"),
    Kind.TRUTH: DocumentMessage("expression.kind.condition"),
    Kind.COLUMN: DocumentMessage("expression.kind.column"),
    Kind.TABLE: DocumentMessage("expression.kind.table"),
    Kind.ANY: DocumentMessage("expression.kind.value"),
}
_ADVICE = {
    (Kind.TEXT, Kind.NUMBER): DocumentMessage("expression.advice.number"),
    (Kind.NUMBER, Kind.TRUTH): DocumentMessage("expression.advice.condition"),
    (Kind.TEXT, Kind.TRUTH): DocumentMessage("expression.advice.condition"),
    (Kind.DATE, Kind.TRUTH): DocumentMessage("expression.advice.condition"),
    (Kind.COLUMN, Kind.NUMBER): DocumentMessage("expression.advice.sum"),
}
_WHOLE_COLUMNS = {"min", "max", "empty"}
"""Functions of values that also take a column."""


def kind_of(node: Node, names: Mapping[str, Kind]) -> Kind:
    """The kind of a node's value, given the kinds of the names. Raises `ExpressionError` if the kinds do not fit."""
    match node:
        case Constant():
            return Kind.TEXT if isinstance(node.value, str) else Kind.NUMBER
        case Name():
            return names[node.name]
        case TableColumn():
            return Kind.COLUMN
        case Negative():
            _must_be(Kind.NUMBER, node.operand, names)
            return Kind.NUMBER
        case Chain():
            for operand in (node.first, *(operand for _, operand in node.rest)):
                _must_be(Kind.NUMBER, operand, names)
            return Kind.NUMBER
        case Compare():
            _check_comparison(node, names)
            return Kind.TRUTH
        case Both() | Either():
            for part in node.parts:
                _must_be(Kind.TRUTH, part, names)
            return Kind.TRUTH
        case Not():
            _must_be(Kind.TRUTH, node.operand, names)
            return Kind.TRUTH
        case Call():
            return _call(node, names)
        case _:
            return Kind.ANY


def must_give(wanted: Kind, node: Node, names: Mapping[str, Kind]) -> Kind:
    """The kind of a whole expression, which must be the wanted one. `ANY` accepts every single value."""
    return _must_be(wanted, node, names)


def _must_be(wanted: Kind, node: Node, names: Mapping[str, Kind]) -> Kind:
    kind = kind_of(node, names)
    single = kind not in {Kind.COLUMN, Kind.TABLE}
    if kind is wanted or (single and Kind.ANY in {kind, wanted}) or (single and wanted is Kind.TEXT):
        return kind
    if wanted is Kind.DATE and kind is Kind.TEXT:
        return kind
    found, needed, advice = _NAMES[kind], _NAMES[wanted], _ADVICE.get((kind, wanted))
    if isinstance(node, Name | TableColumn):
        why = DocumentMessage("expression.wrong_kind", name=node.name, found=found, needed=needed, advice=advice)
    else:
        why = DocumentMessage("expression.wrong_kind_here", found=found, needed=needed, advice=advice)
    raise ExpressionError(why, node.position)


def _check_comparison(node: Compare, names: Mapping[str, Kind]) -> None:
    left, right = (_must_be(Kind.ANY, side, names) for side in (node.left, node.right))
    if node.tolerance is not None:
        for part in (node.left, node.right, node.tolerance):
            _must_be(Kind.NUMBER, part, names)
    if any(isinstance(side, Constant) and side.value == "" for side in (node.left, node.right)):
        return
    if left is not right and Kind.ANY not in {left, right} and {left, right} != {Kind.DATE, Kind.TEXT}:
        raise ExpressionError(
            DocumentMessage("expression.not_comparable", left=_NAMES[left], right=_NAMES[right]), node.position
        )


def _call(node: Call, names: Mapping[str, Kind]) -> Kind:
    function = FUNCTIONS[node.function]
    given: list[Kind] = []
    for index, argument in enumerate(node.arguments):
        wanted = function.parameter(index)
        if isinstance(argument, TableColumn) and (
            wanted in {Kind.COLUMN, Kind.TABLE} or node.function in _WHOLE_COLUMNS
        ):
            given.append(names[argument.name])
        elif wanted is Kind.COLUMN:
            raise ExpressionError(DocumentMessage("expression.takes_column", function=node.function), argument.position)
        elif wanted is Kind.TABLE or (node.function == "empty" and isinstance(argument, Name)):
            kind = kind_of(argument, names)
            if wanted is Kind.TABLE and kind is not Kind.TABLE:
                raise ExpressionError(
                    DocumentMessage("expression.takes_table", function=node.function), argument.position
                )
            given.append(kind)
        elif wanted in _NAMES:
            given.append(_must_be(wanted, argument, names))
    if function.gives is not Kind.ANY:
        return function.gives
    several = set(given[1:] if node.function == "if" else given)
    return several.pop() if len(several) == 1 else Kind.ANY
