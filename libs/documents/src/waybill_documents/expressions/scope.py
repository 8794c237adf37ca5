"""What the names of an expression mean: a document's values, its look-ups, and one row where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Miss(NamedTuple):
    """A text that was looked up and is not there."""

    lookup: str
    text: str


class Scope:
    """What names mean while expressions are evaluated.

    A bare name is looked for in the row, then in the document. A dotted one is a column: `lines.amount` is the amount
    of every row. What is nowhere is empty; `check_names` has refused the mapping if it cannot be anywhere. A row that
    has its column empty hides a field of the same name; a row that lacks the column does not, so rows should have all
    their columns (`compute` sees to it).

    Sums over a column are remembered, so that using one in every row costs no more than using it once. The data must
    therefore not change while a scope is in use: make a new one, it costs nothing.
    """

    __slots__ = ("_folded", "carried", "data", "index", "lookups", "memory", "misses", "row")

    def __init__(
        self,
        data: Mapping[str, Any],
        lookups: Mapping[str, Mapping[str, str]] | None = None,
        row: Mapping[str, Any] | None = None,
        *,
        carried: Mapping[str, bool | None] | None = None,
    ) -> None:
        self.data = data
        self.lookups = lookups or {}
        self.row = row
        self.index: int | None = None
        """Where the row stands in its table, from 0; None without a row."""
        self.carried = carried or {}
        """For each table, whether the sums carried from page to page agree; empty without any where none must be."""
        self.misses: list[Miss] = []
        """What was looked up in vain, in order; shared with the scopes of rows."""
        self.memory: dict[str, Any] = {}
        self._folded: dict[str, dict[str, str]] = {}

    def with_row(self, row: Mapping[str, Any], index: int | None = None) -> Scope:
        """The same for one row; cheap, and what one row remembers the next one knows."""
        scope = object.__new__(Scope)
        scope.data = self.data
        scope.lookups = self.lookups
        scope.row = row
        scope.index = index
        scope.carried = self.carried
        scope.misses = self.misses
        scope.memory = self.memory
        scope._folded = self._folded
        return scope

    def column(self, table: str, column: str) -> list[Any]:
        """The column's value in every row."""
        name = f"{table}.{column}"
        found = self.memory.get(name)
        if found is None:
            rows = self.data.get(table)
            found = [row.get(column) for row in rows] if isinstance(rows, list) else []
            self.memory[name] = found
        return found

    def look_up(self, lookup: str, text: str) -> str | None:
        """What the text becomes; case and spacing do not matter. What is not there is a miss, unless there is a `*`."""
        entries = self._folded.get(lookup)
        if entries is None:
            entries = {_folded(key): becomes for key, becomes in self.lookups.get(lookup, {}).items()}
            self._folded[lookup] = entries
        found = entries.get(_folded(text), entries.get("*"))
        if found is None:
            self.misses.append(Miss(lookup, text))
        return found


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
