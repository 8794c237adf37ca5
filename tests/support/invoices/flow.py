"""Distributes the lines of an invoice over pages, and computes the sums carried between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from support.invoices.layout import Layout
from support.invoices.sheet import wrap
from support.invoices.truth import ZERO, Invoice, Line


@dataclass(frozen=True)
class Part:
    """The part of a line on one page: its numbers if it begins here, and some lines of its description."""

    line: Line
    text: tuple[str, ...]
    begins: bool


@dataclass(frozen=True)
class Page:
    parts: tuple[Part, ...]
    brought: Decimal | None  # Pindahan; None on the first page
    carried: Decimal | None  # Jumlah pindahan; None on the last page


@dataclass(frozen=True)
class Room:
    """The height of the space for rows, without the blocks above and below them."""

    first: float
    later: float
    closing: float  # what the totals and all below them take on the last page
    carry: float  # what the carry-over row takes on all others


@dataclass
class _Flow:
    layout: Layout
    room: Room
    pages: list[Page] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    running: Decimal = ZERO
    brought: Decimal | None = None

    def __post_init__(self) -> None:
        self.left = self.room.first

    def turn(self, *, last: bool = False) -> None:
        carried = None if last else self.running
        self.pages.append(Page(tuple(self.parts), self.brought, carried))
        self.parts, self.brought, self.left = [], carried, self.room.later

    def place(self, line: Line, text: tuple[str, ...]) -> None:
        begins = True
        while text:
            fitting = int((self.left - self.room.carry - self.layout.row_gap) / self.layout.line_height + 1e-6)
            take = len(text) if fitting >= len(text) else fitting if self.layout.split_rows else 0
            if take <= 0:
                if not self.parts:
                    raise ValueError(f"line {line.no} is higher than a page")
                self.turn()
                continue
            self.parts.append(Part(line, text[:take], begins))
            self.left -= row_height(self.layout, take)
            if begins:
                self.running += line.amount
            text, begins = text[take:], False


def row_height(layout: Layout, lines: int = 1) -> float:
    return lines * layout.line_height + layout.row_gap


def paginate(invoice: Invoice, layout: Layout, room: Room) -> tuple[Page, ...]:
    column = layout.column("description")
    flow = _Flow(layout, room)
    for line in invoice.lines:
        text = wrap(line.description, layout.font.regular, layout.size, column.width - 2 * layout.padding)
        flow.place(line, text)
    if flow.left < room.closing:
        flow.turn()
    flow.turn(last=True)
    return tuple(flow.pages)
