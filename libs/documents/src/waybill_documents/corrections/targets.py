"""Finds the value of a path such as `net` or `lines[213].amount`. Only values read from the page can be corrected."""

from __future__ import annotations

import re
from dataclasses import dataclass

from waybill_documents.mapping.model import ColumnRule, FieldRule, Mapping
from waybill_documents.values import Extracted, Value

_PATH = re.compile(
    r"(?P<head>[a-z][a-z0-9_]{0,63})(?:\[(?P<index>0|[1-9][0-9]{0,5})\]\.(?P<column>[a-z][a-z0-9_]{0,63}))?"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A value that can be corrected, and the rule that reads it."""

    path: str
    name: str
    where: str
    """The part of the mapping that finds it, as in `tables.lines.columns.amount`."""
    rule: FieldRule | ColumnRule | None
    """None for a note, which is a text."""
    table: str | None = None
    index: int = 0

    @property
    def line(self) -> int | None:
        """The line number, counted from 1; None for a field."""
        return None if self.table is None else self.index + 1

    def value(self, extracted: Extracted) -> Value:
        """The current value."""
        if self.table is None:
            return extracted.fields[self.name]
        return extracted.tables[self.table][self.index][self.name]

    def put(self, extracted: Extracted, value: Value) -> None:
        """Replace the value."""
        if self.table is None:
            extracted.fields[self.name] = value
        else:
            extracted.tables[self.table][self.index][self.name] = value


def target(mapping: Mapping, extracted: Extracted, path: str) -> Target | None:
    """The value of a path; None if it does not exist or was not read."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    head, index, column = match["head"], match["index"], match["column"]
    if column is None:
        return Target(path, head, f"fields.{head}", mapping.fields[head]) if head in mapping.fields else None
    table = mapping.tables.get(head)
    rows = extracted.tables.get(head, [])
    if table is None or int(index) >= len(rows) or column not in rows[int(index)]:
        return None
    if column in table.columns:
        return Target(path, column, f"tables.{head}.columns.{column}", table.columns[column], head, int(index))
    return (
        Target(path, column, f"tables.{head}.notes.{column}", None, head, int(index)) if column in table.notes else None
    )


def is_computed(mapping: Mapping, path: str) -> bool:
    """Whether a path names a computed value."""
    match = _PATH.fullmatch(path)
    if match is None:
        return False
    table = mapping.tables.get(match["head"])
    return match["column"] in table.computed if table is not None else path in mapping.computed
