"""Compares a column of an invoice's lines with what is printed, such as all net amounts.

The column is found by its header, and its numbers are taken in their order. A difference is claimed where one number
differs and its neighbours agree, because then we know which line it belongs to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from waybill_documents.geometry import Box
from waybill_documents.printed.labels import AMOUNT_COLUMN, QUANTITY_COLUMN
from waybill_documents.printed.outcome import PrintedOutcome
from waybill_documents.printed.paper import Paper, PrintedAmount, amounts_in
from waybill_documents.text_lines import Lines

_BESIDE = 3.0
"""Points by which a number may miss its header. Most stand right under it."""
_MOST_DIFFERENT = 10
"""One line in so many may differ. If more do, we have not understood the table."""


class Columns(NamedTuple):
    """The printed numbers under the headers of the quantities and of the amounts."""

    quantity: list[PrintedAmount]
    net: list[PrintedAmount]


def columns_of(paper: Paper) -> Columns:
    """The columns of the table of lines; empty if there is no header with both."""
    quantity: list[PrintedAmount] = []
    net: list[PrintedAmount] = []
    header: tuple[Box, Box] | None = None
    for lines in paper.pages:
        at = -1
        if found := _header(lines):
            at, *header_boxes = found
            header = (header_boxes[0], header_boxes[1])
        if header is None:
            continue
        for line in lines.lines[at + 1 :]:
            for each in amounts_in(line.words, lines.page.number):
                if _under(each, header[0]):
                    quantity.append(each)
                elif _under(each, header[1]):
                    net.append(each)
    return Columns(quantity, net)


def _header(lines: Lines) -> tuple[int, Box, Box] | None:
    """The first line that names both columns, and the boxes of the two names."""
    quantities = _named(lines, QUANTITY_COLUMN)
    amounts = _named(lines, AMOUNT_COLUMN)
    for line in sorted(quantities.keys() & amounts.keys()):
        # The amount of a line stands at the right; to the left of the quantity it would be a price.
        quantity, amount = quantities[line][0], amounts[line][-1]
        if amount[0] > quantity[2]:
            return line, quantity, amount
    return None


def _named(lines: Lines, phrases: Sequence[str]) -> dict[int, list[Box]]:
    found: dict[int, list[Box]] = {}
    for phrase in phrases:
        for span in lines.find(phrase):
            found.setdefault(span.line, []).append(lines.box(span))
    for boxes in found.values():
        boxes.sort()
    return found


def _under(printed: PrintedAmount, header: Box) -> bool:
    left, _, right, _ = printed.place.box
    return left <= header[2] + _BESIDE and right >= header[0] - _BESIDE


def compare_column(
    paper: Paper, column: Sequence[PrintedAmount], values: Sequence[Decimal | None]
) -> list[PrintedOutcome]:
    """An outcome for each line, in their order."""
    printed = list(column[: len(values)])
    fits = [_fit(value, each) for value, each in zip(values, printed, strict=False)]
    clear = len(printed) == len(values) and fits.count(False) <= max(1, len(values) // _MOST_DIFFERENT)
    seldom = _seldom(column, values)
    taken: Counter[Decimal] = Counter()
    outcomes = []
    for index, value in enumerate(values):
        if value is None:
            outcomes.append(PrintedOutcome.unseen(worth_a_note=False))
        elif clear and fits[index]:
            outcomes.append(PrintedOutcome.same(printed[index].place))
        elif clear and abs(value) in seldom and all(_neighbours(fits, index)):
            outcomes.append(PrintedOutcome(False, printed[index].place, printed[index].text))
        else:
            known = paper.amounts(value)
            outcomes.append(
                PrintedOutcome.same(known[min(taken[value], len(known) - 1)].place)
                if known
                else PrintedOutcome.unseen()
            )
            taken[value] += 1
    return outcomes


def _fit(value: Decimal | None, printed: PrintedAmount) -> bool:
    return value is None or abs(value) in printed.readings


def _neighbours(fits: Sequence[bool], index: int) -> Iterator[bool]:
    """Whether the lines before and after it fit. Without any, nothing tells that this is the line."""
    around = [fits[at] for at in (index - 1, index + 1) if 0 <= at < len(fits)]
    yield bool(around)
    yield from around


def _seldom(column: Sequence[PrintedAmount], values: Sequence[Decimal | None]) -> set[Decimal]:
    """The values that fewer printed numbers can be than there are lines with them."""
    wanted = Counter(abs(value) for value in values if value is not None)
    there = Counter(reading for each in column for reading in each.readings)
    return {value for value, count in wanted.items() if there[value] < count}
