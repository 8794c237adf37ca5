"""Values and their provenance."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from waybill_documents.geometry import Place

Scalar = str | int | Decimal | date | bool | None
"""The type of a field, a cell or an expression. There are no floats."""


@dataclass(slots=True)
class Value:
    """One extracted or computed value with its provenance."""

    value: Scalar
    raw: str
    """The text as it is printed; empty for a constant or a computed value."""
    rule: str
    """The part of the mapping that found it, as in `fields.number` or `tables.lines.columns.amount`."""
    places: tuple[Place, ...] = ()
    """Where it is printed; more than one place if it crosses a page break."""
    confidence: int = 100
    """0 to 100; docs/mappings.md says how it is derived."""
    most: int = 100
    """The confidence that a check can raise it to."""
    unchecked: int | None = None
    """Its confidence before a check changed it, or None. After a correction, checks start from here again."""


Row = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Carry:
    """A sum that a page carries forward to the next one, or brings in from the one before."""

    page: int
    direction: Literal["out", "into"]
    amount: Decimal
    after_rows: int
    """How many rows of the table come before it, on this page and all previous ones."""
    place: Place
    raw: str


@dataclass(slots=True)
class Extracted:
    """What was read from a document, before it is written as JSON or XML."""

    fields: dict[str, Value]
    tables: dict[str, list[Row]]
    carries: dict[str, list[Carry]] = field(default_factory=dict)
    """The carried sums by table."""
    pages: int | None = None
    """How many pages were read; None for a document that has none, such as JSON."""

    def data(self) -> dict[str, Any]:
        """The plain values: what expressions, XML and the JSON answer are made from."""
        plain: dict[str, Any] = {} if self.pages is None else {"pages": self.pages}
        plain |= {name: value.value for name, value in self.fields.items()}  # a field called pages takes precedence
        for name, rows in self.tables.items():
            plain[name] = [{column: value.value for column, value in row.items()} for row in rows]
        return plain
