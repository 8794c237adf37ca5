"""The values of names in an expression: those of the document, its look-ups and, if there is one, a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from waybill_documents.messages import DocumentMessage

Reader = Callable[[str, Literal["decimal", "date"]], Decimal | date | DocumentMessage | None]
"""Reads a printed text by the mapping's locale. Returns a message that says why, if it is not of that type."""


class Miss(NamedTuple):
    """A text without a value: a look-up does not have it, or it cannot be read."""

    lookup: str | None
    text: str
    why: DocumentMessage | None = None
    """Why it cannot be read; None if a look-up does not have it."""


class Scope:
    """The values of names while expressions are evaluated.

    A bare name is looked up in the row, then in the document. A dotted name is a column: `lines.amount` is the amount
    of every row. A name without a value is empty; `check_names` has refused names that cannot exist. An empty cell
    hides a field of the same name, but a missing cell does not, so rows should have all columns (`compute` adds them).

    Sums over a column are cached, so that using one in every row costs no more than using it once. The data must
    therefore not change while a scope is in use. Making a new scope is cheap.
    """

    __slots__ = ("_folded", "_reader", "carried", "data", "index", "lookups", "memory", "misses", "row")

    def __init__(
        self,
        data: Mapping[str, Any],
        lookups: Mapping[str, Mapping[str, str]] | None = None,
        row: Mapping[str, Any] | None = None,
        *,
        carried: Mapping[str, bool | None] | None = None,
        reader: Reader | None = None,
    ) -> None:
        self.data = data
        self.lookups = lookups or {}
        self.row = row
        self.index: int | None = None
        """The index of the row in its table; None without a row."""
        self.carried = carried or {}
        """For each table, whether the carried sums agree; None if there are none and none are needed."""
        self.misses: list[Miss] = []
        """Texts without a value, in order; shared with the scopes of rows."""
        self.memory: dict[str, Any] = {}
        self._folded: dict[str, dict[str, str]] = {}
        self._reader = reader

    def with_row(self, row: Mapping[str, Any], index: int | None = None) -> Scope:
        """The same scope for one row. It is cheap, and all rows share the cache."""
        scope = object.__new__(Scope)
        scope.data = self.data
        scope.lookups = self.lookups
        scope.row = row
        scope.index = index
        scope.carried = self.carried
        scope.misses = self.misses
        scope.memory = self.memory
        scope._folded = self._folded
        scope._reader = self._reader
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

    def read(self, text: str, type: Literal["decimal", "date"]) -> Decimal | date | None:  # noqa: A002 - as in a mapping
        """The value of a printed text by the mapping's locale. A text that cannot be read is a miss."""
        found = self._reader(text, type) if self._reader is not None else None
        if isinstance(found, DocumentMessage):
            self.misses.append(Miss(None, text, found))
            return None
        return found

    def look_up(self, lookup: str, text: str) -> str | None:
        """The value for the text. A missing text is a miss unless there is a `*`.

        Case and spacing do not matter, and neither does a full stop at the end unless the look-up has both.
        """
        entries = self._folded.get(lookup)
        if entries is None:
            exact = {_folded(key): becomes for key, becomes in self.lookups.get(lookup, {}).items()}
            entries = {key.rstrip("."): becomes for key, becomes in exact.items()} | exact
            self._folded[lookup] = entries
        wanted = _folded(text)
        found = entries.get(wanted, entries.get(wanted.rstrip("."), entries.get("*")))
        if found is None:
            self.misses.append(Miss(lookup, text))
        return found


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
