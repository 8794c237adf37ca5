"""A record as the review page shows it: its values, tables, problems and choices. `review_values` fills these in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from waybill_documents.geometry import Place


class ShownCell(NamedTuple):
    """One value."""

    id: str
    """The path in a form that needs no escaping in addresses and selectors, such as `lines.3.amount`."""
    path: str
    label: str
    text: str
    look: str
    says: str
    """Why it is marked: shown as a tooltip, and read by screen readers."""
    places: tuple[Place, ...]
    numeric: bool = False
    list: str = ""
    edit: str = ""
    """The name of the link that edits it; empty if it cannot be corrected."""

    @property
    def placed(self) -> bool:
        return bool(self.places)

    @property
    def doubtful(self) -> bool:
        return "doubt" in self.look


class ColumnHeading(NamedTuple):
    label: str
    numeric: bool


class ShownLine(NamedTuple):
    id: str
    path: str
    number: int
    edit: str
    cells: list[ShownCell]


class ShownTable(NamedTuple):
    name: str
    title: str
    columns: list[ColumnHeading]
    rows: list[ShownLine]
    numbered: bool
    """Whether one of its columns holds the line numbers."""


class Wrong(NamedTuple):
    text: str
    href: str
    goes: str
    """The id of the value it is about."""


class Choices(NamedTuple):
    of: str
    texts: list[str]


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """Everything the page shows of one record."""

    fields: list[ShownCell]
    tables: list[ShownTable]
    problems: list[Wrong]
    choices: list[Choices]
    looked: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)

    def cells(self) -> Iterator[ShownCell]:
        yield from self.fields
        for table in self.tables:
            for row in table.rows:
                yield from row.cells

    @property
    def doubtful(self) -> int:
        return sum(cell.doubtful for cell in self.cells())


def id_of(path: str) -> str:
    """A path in a form that needs no escaping in addresses and selectors: `lines[3].amount` is `lines.3.amount`."""
    return path.replace("[", ".").replace("]", "")
