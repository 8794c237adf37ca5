"""Prints the first and last rows of a table, with as many columns as fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from waybill.console.tables import Column, print_table
from waybill.console.terminal import output, print_line, styled
from waybill_documents.mapping.model import TableRule
from waybill_documents.provenance import plain
from waybill_documents.values import Row

_INDENT, _GAP, _HEADER = 2, 2, 8
_TEXT_STEPS = (44, 24, 12)
"""How wide a text column may be, from comfortable to the minimum."""


@dataclass(slots=True)
class _Shown:
    """A column, and how wide it is printed."""

    name: str
    cells: list[Text]
    number: bool
    computed: bool
    width: int

    def narrow(self, text: int, *, header: bool) -> None:
        longest = max((cell.cell_len for cell in self.cells), default=0)
        least = max(longest, _HEADER) if header else max(longest, len(self.name))
        self.width = min(self.width, least if self.number else min(least, text))


def print_rows(rows: Sequence[Row], ends: int, rule: TableRule | None) -> None:
    """Print `ends` rows from each end. Columns that do not fit are named below the table."""
    if not rows:
        print_line(styled("  none", "dim"))
        return
    cut = len(rows) > 2 * ends + 1
    numbers = [*range(ends), *range(len(rows) - ends, len(rows))] if cut else list(range(len(rows)))
    columns = _columns(rows, numbers)
    count = len(str(len(rows)))
    needed = {name for name, column in rule.columns.items() if column.required} if rule else set()
    hidden = _fit(columns, needed, output().width - _INDENT - count)
    table: list[Sequence[Text]] = []
    for position, number in enumerate(numbers):
        if cut and position == ends:
            table.append([styled("…", "dim"), *(Text() for _ in columns)])
        table.append([styled(number + 1, "dim"), *(_short(column.cells[position], column.width) for column in columns)])
    header = [Column("", right=True)]
    header += [Column(_short(styled(each.name), each.width).plain, right=each.number) for each in columns]
    print_table(header, table, indent=_INDENT)
    if hidden:
        print_wrapped(f"also: {', '.join(hidden)} (--json has them)", "dim")


def print_wrapped(text: str, style: str = "") -> None:
    """A paragraph of the report."""
    console = output()
    for line in styled(text, style).wrap(console, console.width - _INDENT):
        line.rstrip()
        print_line(Text.assemble(" " * _INDENT, line))


def _columns(rows: Sequence[Row], numbers: Sequence[int]) -> list[_Shown]:
    rules = {name: value.rule for row in rows for name, value in row.items()}
    notes = {name for name, rule in rules.items() if ".notes." in rule}
    columns = []
    for name, rule in rules.items():
        if name in notes:
            continue
        cells = [_cell(rows[number], name) for number in numbers]
        values = [rows[number][name].value for number in numbers if name in rows[number]]
        right = any(value is not None for value in values) and not any(isinstance(value, str) for value in values)
        columns.append(_Shown(name, cells, right, ".computed." in rule, 100))
    texts = next((column for column in columns if not column.number), None)
    for position, number in enumerate(numbers):
        # A note has a line of its own, so we show it in the first text column.
        said = [cell for name in notes if (cell := _cell(rows[number], name)).plain]
        if said and texts is not None:
            texts.cells[position] = styled(said[0].plain, "italic dim")
    return columns


def _cell(row: Row, name: str) -> Text:
    value = row.get(name)
    if value is None or value.value is None:
        return Text()
    style = "red" if value.confidence < 60 else "yellow" if value.confidence < 80 else ""
    return styled(str(plain(value.value)).replace("\n", " ⏎ "), style)


def _short(text: Text, width: int) -> Text:
    text.truncate(width, overflow="ellipsis")
    return text


def _fit(columns: list[_Shown], needed: set[str], room: int) -> list[str]:
    """Make the columns fit: shorten texts, drop computed columns, shorten headers and texts more, drop columns."""
    hidden: list[str] = []
    order = [column.name for column in columns]

    def fits() -> bool:
        return sum(column.width + _GAP for column in columns) <= room

    def narrow(text: int, *, header: bool) -> None:
        for column in columns:
            column.narrow(text, header=header)

    def drop(candidates: list[_Shown]) -> None:
        while candidates and len(columns) > 1 and not fits():
            gone = candidates.pop()
            columns.remove(gone)
            hidden.append(gone.name)

    comfortable, telling, least = _TEXT_STEPS
    narrow(comfortable, header=False)
    if not fits():
        narrow(telling, header=False)
    drop([column for column in columns if column.computed])
    if not fits():
        narrow(telling, header=True)
    if not fits():
        narrow(least, header=True)
    drop([column for column in columns if column.name not in needed])
    drop(list(columns))
    _give_back(columns, room)
    return sorted(hidden, key=order.index)


def _give_back(columns: list[_Shown], room: int) -> None:
    """Give the space that is left to the first columns that were shortened."""
    spare = room - sum(column.width + _GAP for column in columns)
    for column in columns:
        wanted = max([len(column.name), *(cell.cell_len for cell in column.cells)]) - column.width
        if spare > 0 and wanted > 0:
            more = min(spare, wanted)
            column.width += more
            spare -= more
