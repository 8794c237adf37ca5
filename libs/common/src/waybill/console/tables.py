"""Prints tables that fit the terminal without wrapping ids.

On a narrow terminal, first the last column shrinks, then the least important columns are dropped, and finally each row
becomes a small block. `--json` always has everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from waybill.console.terminal import UNLIMITED, output

_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    header: str
    right: bool = False
    """Whether it is aligned to the right, as numbers are."""
    drop: int = 0
    """0 means never. Otherwise the column with the highest number is dropped first; an empty one always is."""
    most: int | None = None
    """The most characters on a terminal, for names that users choose."""
    least: int | None = None
    """The fewest characters, for a last column of free text."""
    wraps: bool = False
    """Whether text wraps within the column instead of being cut."""


Row = Sequence[Text]


def print_table(columns: Sequence[Column], rows: Sequence[Row], *, indent: int = 0) -> None:
    console = output()
    widths = [max([len(column.header), *(row[index].cell_len for row in rows)]) for index, column in enumerate(columns)]
    shown = [
        index for index, column in enumerate(columns) if column.drop == 0 or any(row[index].cell_len for row in rows)
    ]
    room = console.width - indent
    if console.width < UNLIMITED:
        widths = [min(width, column.most or width) for width, column in zip(widths, columns, strict=True)]
    while _needed(columns, widths, shown) > room:
        droppable = [index for index in shown if columns[index].drop]
        if not droppable:
            _print_blocks(console, columns, rows, indent)
            return
        shown.remove(max(droppable, key=lambda index: columns[index].drop))
    last = shown[-1]
    if columns[last].least is not None:
        widths[last] = min(widths[last], room - sum(widths[index] + _GAP for index in shown[:-1]))
    if any(column.header for column in columns):
        _print_row(console, columns, widths, shown, [Text(column.header, "bold") for column in columns], indent)
    for row in rows:
        _print_row(console, columns, widths, shown, row, indent)


def _needed(columns: Sequence[Column], widths: Sequence[int], shown: Sequence[int]) -> int:
    fixed = sum(widths[index] for index in shown[:-1]) + _GAP * (len(shown) - 1)
    least = columns[shown[-1]].least
    return fixed + (widths[shown[-1]] if least is None else min(widths[shown[-1]], least))


def _print_row(
    console: Console,
    columns: Sequence[Column],
    widths: Sequence[int],
    shown: Sequence[int],
    row: Row,
    indent: int,
) -> None:
    line = Text(" " * indent)
    for index in shown[:-1]:
        cell = row[index].copy()
        cell.truncate(widths[index], overflow="ellipsis")
        blank = " " * (widths[index] - cell.cell_len)
        line.append_text(Text.assemble(blank, cell) if columns[index].right else Text.assemble(cell, blank))
        line.append(" " * _GAP)
    start, last = line.cell_len, shown[-1]
    rest = row[last].copy()
    if columns[last].wraps and rest.cell_len:
        first, *more = rest.wrap(console, widths[last])
    else:
        first, more = rest, []
        first.truncate(widths[last], overflow="ellipsis")
    if columns[last].right:
        line.append(" " * (widths[last] - first.cell_len))
    line.append_text(first)
    line.rstrip()
    console.print(line, soft_wrap=True)
    for other in more:
        other.rstrip()
        console.print(Text.assemble(" " * start, other), soft_wrap=True)


def _print_blocks(console: Console, columns: Sequence[Column], rows: Sequence[Row], indent: int) -> None:
    """Print each row as a block: the first cell, then the others with their headers."""
    longest = max(len(column.header) for column in columns[1:])
    for row in rows:
        console.print(Text.assemble(" " * indent, row[0]), soft_wrap=True)
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell.cell_len:
                name = Text(f"{' ' * indent}  {column.header.lower():<{longest}}  ", "dim")
                console.print(Text.assemble(name, cell), soft_wrap=True)


def print_facts(facts: Sequence[tuple[str, Text]], *, indent: int = 2) -> None:
    """Print names and values in two columns. Text with spaces wraps, ids never do."""
    print_table(
        [Column(""), Column("", least=36, wraps=True)],
        [(Text(name, "dim"), value) for name, value in facts],
        indent=indent,
    )
