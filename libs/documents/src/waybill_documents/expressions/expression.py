"""An expression. It is parsed and compiled once, when the mapping is loaded, and evaluated for every row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic_core import core_schema

from waybill_documents.expressions.compiler import compile_node
from waybill_documents.expressions.functions import FUNCTIONS, Kind
from waybill_documents.expressions.nodes import Both, Call, Compare, Constant, Name, Node, Operator, TableColumn, walk
from waybill_documents.expressions.parser import LONGEST, parse
from waybill_documents.expressions.scope import Scope
from waybill_documents.messages import DocumentMessage, Mistake
from waybill_documents.values import Scalar


@dataclass(frozen=True, slots=True)
class Comparison:
    """The two sides of a comparison in one scope, for findings."""

    left: Scalar
    operator: Operator
    right: Scalar
    tolerance: Scalar
    """None when there is none."""
    holds: bool | None
    """None when a side is empty, or when the two cannot be compared."""
    tree: Compare


class Expression:
    """An expression of the mapping language, made from its text.

    Raises `ExpressionError` for invalid text. Two expressions are equal if their texts are. In JSON it is its text.
    """

    __slots__ = ("_run", "carrying", "functions", "lookups", "names", "spreading", "text", "tree")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = parse(text)
        self._run = compile_node(self.tree)
        parts = list(walk(self.tree))
        self.names = frozenset(part.name for part in parts if isinstance(part, Name | TableColumn))
        """The names it uses, as they are written: `net`, `lines.amount`."""
        self.functions = frozenset(part.function for part in parts if isinstance(part, Call))
        self.lookups = frozenset(_named(parts, Kind.LOOKUP))
        """The look-ups it uses."""
        self.carrying = frozenset(_named(parts, Kind.CARRYING))
        """The tables whose carried sums it asks for."""
        self.spreading = frozenset(
            part.arguments[1].name
            for part in parts
            if isinstance(part, Call) and part.function == "spread" and isinstance(part.arguments[1], TableColumn)
        )
        """The columns by which it distributes a number over rows."""

    def evaluate(self, scope: Scope) -> Scalar | list[Any]:
        """Its value, or None if it is empty. A bare column or table is a list. Never raises."""
        return self._run(scope)  # type: ignore[no-any-return]  # closures are not typed by what they give

    def for_rows(self) -> Callable[[Scope], Scalar | list[Any]]:
        """The same as `evaluate`, for the rows of one table in a document that does not change meanwhile.

        What is made from a single text of the row, such as a look-up, is computed once for each text. Numbers are not
        remembered, because 1.0 and 1.00 are equal and have different spellings.
        """
        [name] = self.names if len(self.names) == 1 else [None]
        evaluate = self._run
        if name is None or "." in name or isinstance(self.tree, Name):
            return evaluate
        known: dict[str, Any] = {}

        def remembering(scope: Scope) -> Any:
            text = scope.row.get(name) if scope.row is not None else None
            if type(text) is not str:
                return evaluate(scope)
            if text in known:
                return known[text]
            missed = len(scope.misses)
            value = evaluate(scope)
            if len(scope.misses) == missed:  # a text without a value is reported for every row
                known[text] = value
            return value

        return remembering

    def holds(self, scope: Scope) -> bool:
        """Whether it is true; an empty condition does not hold."""
        return self._run(scope) is True

    def sides(self, scope: Scope) -> Comparison | None:
        """The comparison that decides the result: the expression itself, or the first part of an `and` that fails.

        None for anything else, such as the function `running`, a choice or a negation.
        """
        return sides(self.tree, scope)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Expression) else NotImplemented

    def __hash__(self) -> int:
        return hash((Expression, self.text))

    def __reduce__(self) -> tuple[type[Expression], tuple[str]]:
        # Closures cannot be pickled, so a mapping is parsed again in another process.
        return Expression, (self.text,)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(
                cls, core_schema.str_schema(min_length=1, max_length=LONGEST)
            ),
            python_schema=core_schema.no_info_plain_validator_function(cls._from_python),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda expression: expression.text, return_schema=core_schema.str_schema()
            ),
        )

    @classmethod
    def _from_python(cls, given: Any) -> Expression:
        if isinstance(given, Expression):
            return given
        if not isinstance(given, str):
            raise Mistake(DocumentMessage("expression.not_a_text"))
        return cls(given)


def sides(tree: Node, scope: Scope) -> Comparison | None:
    """`Expression.sides` for a part of one."""
    match tree:
        case Compare():
            left, right = compile_node(tree.left)(scope), compile_node(tree.right)(scope)
            tolerance = None if tree.tolerance is None else compile_node(tree.tolerance)(scope)
            holds = compile_node(tree)(scope)
            return Comparison(left, tree.operator, right, tolerance, holds, tree)
        case Both():
            found = [comparison for part in tree.parts if (comparison := sides(part, scope))]
            return next((comparison for comparison in found if not comparison.holds), None)
        case _:
            return None


def _named(parts: list[Node], kind: Kind) -> Iterator[str]:
    """The constant arguments of this kind."""
    for part in parts:
        if isinstance(part, Call):
            for index, argument in enumerate(part.arguments):
                if isinstance(argument, Constant) and FUNCTIONS[part.function].parameter(index) is kind:
                    yield str(argument.value)
