"""How confident we are in a value, from 0 to 100. `docs/mappings.md` explains the numbers to users.

The way a value was found gives its initial confidence, and doubts reduce it. Then the checks decide: arithmetic that
holds is better proof than any position on a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from waybill_documents.expressions.nodes import Both, Call, Compare, Node
from waybill_documents.mapping.model import Mapping
from waybill_documents.value_paths import ValuePaths
from waybill_documents.values import Extracted, Value

BASE = {"label": 95, "column": 95, "pattern": 90, "area": 80}
"""By how the value was found. A label or a header names it, a pattern describes only its shape, an area neither."""
AMBIGUOUS = 20
"""Subtracted when the same rule also found another value elsewhere."""
DOUBTFUL = 25
"""Subtracted when the edge between two columns crosses a word of the cell, when a dash before a number may be its
minus, or when a line may belong to the next row."""
RECOGNISED = 30
"""Subtracted on a page with recognised text (OCR), which may differ from what a person sees."""
FROM_DEFAULT = 60
"""For a default, which replaces a value that was not found. No check raises it."""
NOT_FOUND = 70
"""For an optional value that was not found; it is probably not on the page."""
PROVED = 100
"""For a value that a check proves: it equals what other values give."""
SETTLED = 90
"""The same when the rule found several values: the check shows that this one fits, not that the others do not."""
DISPROVED = 30
"""The maximum for a value when one of its checks fails."""


_PROVING = frozenset({"running", "carried"})
"""Functions that compare values with each other."""


class Judgement(Protocol):
    """The outcome of a check for the values it looked at, by their paths: `net`, `lines[213].amount`."""

    @property
    def name(self) -> str:
        """The name of the check."""

    @property
    def passed(self) -> bool | None:
        """Whether the check holds; None when it did not apply."""

    @property
    def values(self) -> Sequence[str]:
        """The paths it looked at."""

    @property
    def doubted(self) -> Sequence[str]:
        """The paths for which it does not hold."""


def judge(mapping: Mapping, extracted: Extracted, results: Sequence[Judgement]) -> None:
    """Raise and lower confidence by the outcome of the checks. A failed check outweighs any number that hold.

    Only a check of equality proves values: a sum, a running number, a carried amount. A check of a single value (does
    it have 16 digits?) or of an inequality says whether the value is plausible, not whether it was read correctly; it
    can still disprove the value. A default was never read, so nothing proves it.

    Computed values come last, because their confidence depends on the values they were made from.
    """
    by_path: dict[str, Value] | None = None  # long, and made only if something is wrong
    for result in results:
        if result.passed is not None and len(result.values) > 1 and _proves(mapping, result.name):
            proved: Iterable[Value | None]
            if isinstance(result.values, ValuePaths) and not result.doubted:
                proved = result.values.values(extracted)
            else:
                by_path, doubted = by_path or _by_path(extracted), set(result.doubted)
                proved = [by_path.get(path) for path in result.values if path not in doubted]
            for value in proved:
                if value is not None and value.value is not None and FROM_DEFAULT < value.confidence < value.most:
                    _judge_one(value, value.most)
    doubts = {path for result in results for path in result.doubted}
    by_path = by_path or (_by_path(extracted) if doubts else {})
    for path in doubts:
        _doubt(by_path.get(path))
    _follow(mapping, extracted)
    for path in doubts:
        _doubt(by_path.get(path))


def _proves(mapping: Mapping, check: str) -> bool:
    """Whether a check proves values by comparing them with others."""
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


def _doubt(value: Value | None) -> None:
    if value is not None:
        _judge_one(value, min(value.confidence, DISPROVED))


def _judge_one(value: Value, confidence: int) -> None:
    if value.confidence != confidence:
        if value.unchecked is None:
            value.unchecked = value.confidence
        value.confidence = confidence


def _follow(mapping: Mapping, extracted: Extracted) -> None:
    """Give each computed value the lowest confidence of the values it was made from, in the order of computation."""
    for table, rule in mapping.tables.items():
        rows = extracted.tables.get(table, [])
        for name, expression in rule.computed.items():
            mine = [each for each in expression.names if rows and each in rows[0]]
            outside = _least(extracted, expression.names.difference(mine))
            for row in rows:
                if name in row:
                    least = outside
                    for each in mine:
                        if each in row and row[each].confidence < least:
                            least = row[each].confidence
                    row[name].confidence = least
    for name, expression in mapping.computed.items():
        if name in extracted.fields:
            extracted.fields[name].confidence = _least(extracted, expression.names)


def _least(extracted: Extracted, names: Iterable[str]) -> int:
    """The confidences of fields and of all cells of columns. A table as such has none."""
    least = 100
    for name in names:
        table, _, column = name.partition(".")
        if column:
            cells = [row[column].confidence for row in extracted.tables.get(table, ()) if column in row]
            least = min([least, *cells])
        elif name in extracted.fields:
            least = min(least, extracted.fields[name].confidence)
    return least


def _by_path(extracted: Extracted) -> dict[str, Value]:
    """All values by the paths that checks name them by: `net`, `lines[213].amount`."""
    found = dict(extracted.fields)
    for table, rows in extracted.tables.items():
        for index, row in enumerate(rows):
            start = f"{table}[{index}]."
            found |= {start + column: value for column, value in row.items()}
    return found
