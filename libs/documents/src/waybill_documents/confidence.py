"""How sure we are of a value, from 0 to 100. `docs/mappings.md` explains the numbers to the people who read them.

A value starts with what the way it was found is worth, loses where there was doubt, and is judged by the checks that
looked at it: arithmetic that holds is better proof than any position on a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from waybill_documents.expressions.nodes import Both, Call, Compare, Node
from waybill_documents.mapping.model import Mapping
from waybill_documents.values import Extracted, Value

BASE = {"label": 95, "column": 95, "pattern": 90, "area": 80}
"""By how it was found. A label or a header names the value; a pattern only describes its shape; an area has neither."""
AMBIGUOUS = 20
"""Taken off when the same rule also found another value elsewhere."""
DOUBTFUL = 25
"""Taken off when the edge between two columns runs through a word of the cell."""
RECOGNISED = 30
"""Taken off on a page whose text was recognised in a picture: what is seen may differ from what is read."""
FROM_DEFAULT = 60
"""A default stands for something that was not found. No check makes it surer."""
NOT_FOUND = 70
"""Nothing was found where nothing is required: probably it is not there."""
PROVED = 100
"""A check that says the value equals what others make holds."""
SETTLED = 90
"""The same, where the rule had found several values: the check shows that this one fits, not that no other would."""
DISPROVED = 30
"""At most this, when a check that looked at the value does not hold."""


_PROVING = frozenset({"running", "carried"})
"""Functions that compare values with each other."""


class Judgement(Protocol):
    """What a check says of the values it looked at, by their paths: `net`, `lines[213].amount`."""

    @property
    def name(self) -> str:
        """The check's."""

    @property
    def passed(self) -> bool | None:
        """Whether it holds; None when it did not apply."""

    @property
    def values(self) -> Sequence[str]:
        """What it looked at."""

    @property
    def doubted(self) -> Sequence[str]:
        """What it looked at where it does not hold."""


def judge(mapping: Mapping, extracted: Extracted, results: Sequence[Judgement]) -> None:
    """Raise and lower confidence by what the checks found. One that does not hold outweighs any that do.

    Only a check that says that values are equal proves them: a sum, a running number, an amount carried over. A check
    of a single value (has it 16 digits?), or whether it is less than another, says what it looks like and not whether
    it was read right; it can still disprove. A default was never read, so nothing proves it.

    Computed values come last, for they are as sure as what they were made from.
    """
    for result in results:
        if result.passed is not None and len(result.values) > 1 and _proves(mapping, result.name):
            doubted = set(result.doubted)
            for path in result.values:
                value = _value(extracted, path) if path not in doubted else None
                if value is not None and value.value is not None and value.confidence > FROM_DEFAULT:
                    _judge_one(value, max(value.confidence, value.most))
    doubts = {path for result in results for path in result.doubted}
    for path in doubts:
        _doubt(extracted, path)
    _follow(mapping, extracted)
    for path in doubts:
        _doubt(extracted, path)


def _proves(mapping: Mapping, check: str) -> bool:
    """Whether a check, where it holds, says that values are what others say they are."""
    rule = mapping.checks.get(check)
    return rule is not None and _says_equal(rule.expect.tree)


def _says_equal(node: Node) -> bool:
    match node:
        case Compare():
            return node.operator == "=="
        case Call():
            return node.function in _PROVING
        case Both():
            return all(_says_equal(part) for part in node.parts)
        case _:
            return False


def _doubt(extracted: Extracted, path: str) -> None:
    value = _value(extracted, path)
    if value is not None:
        _judge_one(value, min(value.confidence, DISPROVED))


def _judge_one(value: Value, confidence: int) -> None:
    if value.confidence != confidence:
        if value.unchecked is None:
            value.unchecked = value.confidence
        value.confidence = confidence


def _follow(mapping: Mapping, extracted: Extracted) -> None:
    """Computed values are as sure as the least sure value they were made from, in the order they were made in."""
    for table, rule in mapping.tables.items():
        rows = extracted.tables.get(table, [])
        for name, expression in rule.computed.items():
            mine = [each for each in expression.names if rows and each in rows[0]]
            outside = _least(extracted, expression.names.difference(mine))
            for row in rows:
                if name in row:
                    row[name].confidence = min([outside, *[row[each].confidence for each in mine if each in row]])
    for name, expression in mapping.computed.items():
        if name in extracted.fields:
            extracted.fields[name].confidence = _least(extracted, expression.names)


def _least(extracted: Extracted, names: Iterable[str]) -> int:
    """Of fields and of all cells of columns; a table as such is sure."""
    least = 100
    for name in names:
        table, _, column = name.partition(".")
        if column:
            cells = [row[column].confidence for row in extracted.tables.get(table, ()) if column in row]
            least = min([least, *cells])
        elif name in extracted.fields:
            least = min(least, extracted.fields[name].confidence)
    return least


def _value(extracted: Extracted, path: str) -> Value | None:
    table, bracket, rest = path.partition("[")
    if not bracket:
        return extracted.fields.get(path)
    number, _, column = rest.partition("].")
    return extracted.tables[table][int(number)].get(column)
