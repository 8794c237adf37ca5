"""The tree of a rule package. Two trees are equal if they say the same, wherever in the source they stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from waybill_passport.rules.types import RuleType


def _place() -> int:
    return field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class TextLiteral:
    text: str
    at: int = _place()


@dataclass(frozen=True, slots=True)
class BoolLiteral:
    value: bool
    at: int = _place()


@dataclass(frozen=True, slots=True)
class IntLiteral:
    value: int
    at: int = _place()


@dataclass(frozen=True, slots=True)
class DecimalLiteral:
    """`1.50` has 150 as digits and 2 as scale."""

    digits: int
    scale: int
    at: int = _place()


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    at: int = _place()


@dataclass(frozen=True, slots=True)
class Prefixed:
    """`-x` or `!x`."""

    operator: str
    operand: Term
    at: int = _place()


@dataclass(frozen=True, slots=True)
class Operations:
    """Operators of one precedence from left to right: `a + b - c`. It is flat: a long sum is no deep tree."""

    first: Term
    others: tuple[tuple[str, Term], ...]
    at: int = _place()


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Term
    then: Term
    otherwise: Term
    at: int = _place()


@dataclass(frozen=True, slots=True)
class Let:
    name: str
    value: Term
    at: int = _place()


@dataclass(frozen=True, slots=True)
class Assertion:
    condition: Term
    reason: str
    message: str
    at: int = _place()


@dataclass(frozen=True, slots=True)
class Block:
    """`let` and `assert` in their order, and the result after them. It is flat as well."""

    steps: tuple[Let | Assertion, ...]
    result: Term
    at: int = _place()


@dataclass(frozen=True, slots=True)
class Lambda:
    """`x -> x + 1`: what `map`, `filter` and `fold` do with each item."""

    parameters: tuple[str, ...]
    body: Term
    at: int = _place()


@dataclass(frozen=True, slots=True)
class TypeArgument:
    type: RuleType
    at: int = _place()


@dataclass(frozen=True, slots=True)
class Application:
    """A call of a built-in function."""

    function: str
    arguments: tuple[Argument, ...]
    at: int = _place()


@dataclass(frozen=True, slots=True)
class ListLiteral:
    items: tuple[Term, ...]
    at: int = _place()


@dataclass(frozen=True, slots=True)
class MapLiteral:
    entries: tuple[tuple[str, Term], ...]
    at: int = _place()


@dataclass(frozen=True, slots=True)
class RecordLiteral:
    entries: tuple[tuple[str, Term], ...]
    at: int = _place()


@dataclass(frozen=True, slots=True)
class RecordAccess:
    record: Term
    name: str
    at: int = _place()


Term = (
    TextLiteral
    | BoolLiteral
    | IntLiteral
    | DecimalLiteral
    | Variable
    | Prefixed
    | Operations
    | Conditional
    | Block
    | Application
    | ListLiteral
    | MapLiteral
    | RecordLiteral
    | RecordAccess
)
Argument = Term | Lambda | TypeArgument


@dataclass(frozen=True, slots=True)
class FieldDeclaration:
    path: str
    type: RuleType
    body: Term
    at: int = _place()


@dataclass(frozen=True, slots=True)
class TemplateValue:
    """A text, number, true, false or null in a fact of a test."""

    value: str | int | Decimal | bool | None
    at: int = _place()


@dataclass(frozen=True, slots=True)
class TemplateVariable:
    """A generated value in a fact of a property."""

    name: str
    at: int = _place()


@dataclass(frozen=True, slots=True)
class TemplateList:
    items: tuple[FactTemplate, ...]
    at: int = _place()


@dataclass(frozen=True, slots=True)
class TemplateObject:
    entries: tuple[tuple[str, FactTemplate], ...]
    at: int = _place()


FactTemplate = TemplateValue | TemplateVariable | TemplateList | TemplateObject


@dataclass(frozen=True, slots=True)
class TestFact:
    __test__ = False  # not a test of pytest

    type: str
    key: str
    payload: TemplateObject
    at: int = _place()


@dataclass(frozen=True, slots=True)
class Expectation:
    """`expect condition;`"""

    condition: Term
    at: int = _place()


@dataclass(frozen=True, slots=True)
class FailureExpectation:
    """`expect fails a.b "CODE";`"""

    path: str
    reason: str
    at: int = _place()


@dataclass(frozen=True, slots=True)
class EmissionExpectation:
    """`expect emits "rule" "status";`"""

    rule: str
    status: str
    at: int = _place()


AnyExpectation = Expectation | FailureExpectation | EmissionExpectation


@dataclass(frozen=True, slots=True)
class Forall:
    """`forall x: Int from 0 to 9;`"""

    name: str
    type: RuleType
    low: Term | None
    high: Term | None
    at: int = _place()


@dataclass(frozen=True, slots=True)
class ExampleTest:
    name: str
    facts: tuple[TestFact, ...]
    expectations: tuple[AnyExpectation, ...]
    at: int = _place()


@dataclass(frozen=True, slots=True)
class PropertyTest:
    name: str
    cases: int
    seed: int
    variables: tuple[Forall, ...]
    assumptions: tuple[Term, ...]
    facts: tuple[TestFact, ...]
    expectations: tuple[AnyExpectation, ...]
    at: int = _place()


PackageTest = ExampleTest | PropertyTest


@dataclass(frozen=True, slots=True)
class RuleSource:
    """A whole package as it was read."""

    fields: tuple[FieldDeclaration, ...]
    tests: tuple[PackageTest, ...]


def children(node: Argument) -> Iterator[Argument]:
    """The parts of a node, one level down."""
    match node:
        case Prefixed():
            yield node.operand
        case Operations():
            yield node.first
            yield from (operand for _, operand in node.others)
        case Conditional():
            yield from (node.condition, node.then, node.otherwise)
        case Block():
            yield from (step.value if isinstance(step, Let) else step.condition for step in node.steps)
            yield node.result
        case Lambda():
            yield node.body
        case Application():
            yield from node.arguments
        case ListLiteral():
            yield from node.items
        case MapLiteral() | RecordLiteral():
            yield from (value for _, value in node.entries)
        case RecordAccess():
            yield node.record
        case _:
            pass


def descendants(node: Argument) -> Iterator[tuple[Argument, int]]:
    """The node and all below it with their depths, without recursion."""
    waiting = [(node, 1)]
    while waiting:
        each, depth = waiting.pop()
        yield each, depth
        waiting.extend((child, depth + 1) for child in children(each))
