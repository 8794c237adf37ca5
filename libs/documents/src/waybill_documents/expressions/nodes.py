"""The tree of a parsed expression. `compiler.py` compiles it, `kinds.py` checks it, findings explain it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Operator = Literal["==", "!=", "<", "<=", ">", ">="]
Sign = Literal["+", "-", "*", "/"]


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression."""

    position: int
    """Its position in the text, for messages."""


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """A number or a text in the expression."""

    value: Decimal | str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A field, a computed value, a column of the current row, or a table."""

    name: str


@dataclass(frozen=True, slots=True)
class TableColumn(Node):
    """A column of all rows, as in `lines.amount`."""

    table: str
    column: str

    @property
    def name(self) -> str:
        """As it is written."""
        return f"{self.table}.{self.column}"


@dataclass(frozen=True, slots=True)
class Negative(Node):
    """A minus before a number."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Chain(Node):
    """`a + b - c` or `a * b / c`, from left to right. It is flat, so that a long sum is not deeply nested."""

    first: Node
    rest: tuple[tuple[Sign, Node], ...]


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """Two sides, and the tolerance for equality."""

    left: Node
    operator: Operator
    right: Node
    tolerance: Node | None


@dataclass(frozen=True, slots=True)
class Both(Node):
    """`a and b and c`."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either(Node):
    """`a or b or c`."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    """`not a`."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function and its arguments."""

    function: str
    arguments: tuple[Node, ...]


def inner(node: Node) -> tuple[Node, ...]:
    """The direct parts of a node."""
    match node:
        case Negative() | Not():
            return (node.operand,)
        case Chain():
            return (node.first, *(operand for _, operand in node.rest))
        case Compare():
            return (node.left, node.right) if node.tolerance is None else (node.left, node.right, node.tolerance)
        case Both() | Either():
            return node.parts
        case Call():
            return node.arguments
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything in it, in the order of the text."""
    yield node
    for part in inner(node):
        yield from walk(part)
