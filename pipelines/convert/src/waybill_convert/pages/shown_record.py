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
        """Whether it has a box on a page. A cell of a workbook has none."""
        return bool(self.places) and self.places[0].cell is None

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


class ShownWindow(NamedTuple):
    """Some lines of a table."""

    path: str
    """Of its first line."""
    label: str
    lines: int
    pages: list[int]
    """The document's pages that its lines are on."""
    doubtful: int
    rows: list[ShownLine] | None
    """None if they are not sent now."""


class ShownTable(NamedTuple):
    name: str
    title: str
    columns: list[ColumnHeading]
    windows: list[ShownWindow]
    numbered: bool
    """Whether one of its columns holds the line numbers."""

    def lines(self) -> Iterator[ShownLine]:
        """The lines that are sent."""
        for window in self.windows:
            yield from window.rows or ()


class Wrong(NamedTuple):
    text: str
    href: str
    goes: str
    """The id of the value it is about."""
    at: str = ""
    """The path of that value, if it is on a line that is not sent."""


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
        """The values that are sent."""
        yield from self.fields
        for table in self.tables:
            for row in table.lines():
                yield from row.cells

    @property
    def doubtful(self) -> int:
        """How many values are doubtful, wherever they are."""
        return sum(cell.doubtful for cell in self.fields) + sum(
            window.doubtful for table in self.tables for window in table.windows
        )


def id_of(path: str) -> str:
    """A path in a form that needs no escaping in addresses and selectors: `lines[3].amount` is `lines.3.amount`."""
    return path.replace("[", ".").replace("]", "")
