"""Compiles the tree of an expression to closures, because a check may run for thousands of rows.

Empty values propagate through arithmetic and comparisons: `None + 1` and `None == 1` are both empty. A condition that
is empty does not hold, nor does its negation. `and` and `or` therefore have three-valued logic, as in SQL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from waybill_documents.dates import date_format
from waybill_documents.expressions import numbers, text_functions
from waybill_documents.expressions.functions import FUNCTIONS, Kind, Run
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
from waybill_documents.expressions.scope import Scope
from waybill_documents.expressions.tokens import ExpressionError
from waybill_documents.messages import DocumentMessage, Mistake

_ARITHMETIC: dict[str, Callable[[Any, Any], Decimal | None]] = {
    "+": numbers.add,
    "-": numbers.subtract,
    "*": numbers.multiply,
    "/": numbers.divide,
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


_NOTHING = Scope({})
"""For constants, which are the same in every scope."""


def compile_node(node: Node) -> Run:
    """The function that returns the node's value in a scope."""
    match node:
        case Constant():
            return _constant(node.value)
        case Name():
            return _name(node.name)
        case TableColumn():
            return _column(node)
        case Negative():
            return _negative(compile_node(node.operand))
        case Chain():
            return _chain(node)
        case Compare():
            return _compare(node)
        case Both():
            return _joined(node.parts, decisive=False)
        case Either():
            return _joined(node.parts, decisive=True)
        case Not():
            return _not(compile_node(node.operand))
        case Call():
            return _call(node)
        case _:
            raise AssertionError(f"a node without a meaning: {node}")


def _compared(left: Any, sign: str, right: Any) -> bool | None:
    """The result of a comparison; None when a value is empty or the kinds cannot be compared."""
    a, b = _alike(left, right)
    if a is None or b is None:
        return None
    return _COMPARISONS[sign](a, b)


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    a, b = numbers.number(left), numbers.number(right)
    if a is not None and b is not None:
        return a, b
    if (isinstance(left, str) and isinstance(right, str)) or (isinstance(left, bool) and isinstance(right, bool)):
        return left, right
    if isinstance(left, date) or isinstance(right, date):
        return text_functions.as_date(left), text_functions.as_date(right)
    return None, None


def _constant(value: Decimal | str) -> Run:
    return lambda _: value


def _name(name: str) -> Run:
    def run(scope: Scope) -> Any:
        row = scope.row
        if row is not None and name in row:
            return row[name]
        return scope.data.get(name)

    return run


def _column(node: TableColumn) -> Run:
    table, column = node.table, node.column
    return lambda scope: scope.column(table, column)


def _negative(operand: Run) -> Run:
    return lambda scope: numbers.negative(operand(scope))


def _chain(node: Chain) -> Run:
    first = compile_node(node.first)
    steps = [(_ARITHMETIC[sign], compile_node(operand)) for sign, operand in node.rest]
    if len(steps) == 1:
        [(calculate, second)] = steps
        if isinstance(node.rest[0][1], Constant):
            fixed = second(_NOTHING)
            return lambda scope: calculate(first(scope), fixed)
        return lambda scope: calculate(first(scope), second(scope))

    def run(scope: Scope) -> Any:
        value = first(scope)
        for calculate, operand in steps:
            value = calculate(value, operand(scope))
        return value

    return run


def _is_no_text(node: Node) -> bool:
    return isinstance(node, Constant) and node.value == ""


def _compare(node: Compare) -> Run:
    sign = node.operator
    if sign in {"==", "!="} and node.tolerance is None and (_is_no_text(node.left) or _is_no_text(node.right)):
        # `x == ''` asks whether x is empty, which an ordinary comparison cannot answer.
        tested = compile_node(node.left if _is_no_text(node.right) else node.right)
        wanted = sign == "=="
        return lambda scope: text_functions.empty(tested(scope)) is wanted
    left, right = compile_node(node.left), compile_node(node.right)
    if node.tolerance is not None:
        return _compare_within(left, right, compile_node(node.tolerance), sign)
    compare = _COMPARISONS[sign]

    def run(scope: Scope) -> bool | None:
        a, b = left(scope), right(scope)
        if type(a) is Decimal and type(b) is Decimal and a.is_finite() and b.is_finite():
            return compare(a, b)
        return _compared(a, sign, b)

    return run


def _compare_within(left: Run, right: Run, tolerance: Run, sign: str) -> Run:
    wanted = sign == "=="

    def run(scope: Scope) -> bool | None:
        apart, bound = numbers.subtract(left(scope), right(scope)), numbers.number(tolerance(scope))
        return None if apart is None or bound is None else (apart.copy_abs() <= bound) is wanted

    return run


def _joined(parts: tuple[Node, ...], *, decisive: bool) -> Run:
    """`or` is decided by the first part that holds, `and` by the first that does not. Empty parts decide nothing."""
    runs = [compile_node(part) for part in parts]

    def run(scope: Scope) -> Any:
        result: bool | None = not decisive
        for part in runs:
            value = part(scope)
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                result = None
        return result

    return run


def _not(operand: Run) -> Run:
    def run(scope: Scope) -> Any:
        value = operand(scope)
        return not value if isinstance(value, bool) else None

    return run


def _call(node: Call) -> Run:
    function = FUNCTIONS[node.function]
    arguments = _arguments(node)
    call = function.implementation
    if function.lazy:
        return lambda scope: call(scope, *arguments)
    if len(arguments) == 1:
        [only] = arguments
        if isinstance(node.arguments[0], TableColumn):
            return _remembered(f"{node.function}({node.arguments[0].name})", lambda scope: call(only(scope)))
        return lambda scope: call(only(scope))
    if len(arguments) == 2:
        one, two = arguments
        if isinstance(node.arguments[1], Constant):
            fixed = two(_NOTHING)
            return lambda scope: call(one(scope), fixed)
        return lambda scope: call(one(scope), two(scope))
    return lambda scope: call(*[argument(scope) for argument in arguments])


def _remembered(key: str, run: Run) -> Run:
    def remembered(scope: Scope) -> Any:
        memory = scope.memory
        if key not in memory:
            memory[key] = run(scope)
        return memory[key]

    return remembered


def _arguments(node: Call) -> list[Run]:
    """The compiled arguments. Patterns, formats and the like are prepared here, once."""
    function = FUNCTIONS[node.function]
    prepared: list[Any] = []
    for index, argument in enumerate(node.arguments):
        kind = function.parameter(index)
        if kind in _PREPARED:
            if not (isinstance(argument, Constant) and isinstance(argument.value, str)):
                why = DocumentMessage("expression.needs_quotes", argument=_QUOTED[kind], function=node.function)
                raise ExpressionError(why, argument.position)
            try:
                prepared.append(_PREPARED[kind](argument.value, prepared))
            except Mistake as mistake:
                raise ExpressionError(mistake.says, argument.position) from None
        else:
            prepared.append(None)
    return [
        compile_node(argument) if ready is None else _constant(ready)
        for argument, ready in zip(node.arguments, prepared, strict=True)
    ]


_QUOTED = {
    Kind.PATTERN: DocumentMessage("expression.quoted.pattern"),
    Kind.FORMAT: DocumentMessage("expression.quoted.date_format"),
    Kind.TEMPLATE: DocumentMessage("expression.quoted.replacement"),
    Kind.LOOKUP: DocumentMessage("expression.quoted.lookup"),
    Kind.CARRYING: DocumentMessage("expression.quoted.table"),
}
_PREPARED: dict[Kind, Callable[[str, list[Any]], Any]] = {
    Kind.PATTERN: lambda text, _: text_functions.compiled(text),
    Kind.FORMAT: lambda text, _: date_format(text),
    Kind.TEMPLATE: lambda text, before: text_functions.template(text, before[-1].groups),
    Kind.LOOKUP: lambda text, _: text,
    Kind.CARRYING: lambda text, _: text,
}
