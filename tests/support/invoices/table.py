"""The table of one page: heading, carry-overs, rows, rules."""

from __future__ import annotations

from decimal import Decimal

from support.invoices import wording
from support.invoices.flow import Page, Part, row_height
from support.invoices.layout import Align, Column, Layout, Rules
from support.invoices.sheet import DoesNotFit, Sheet, width_of
from support.invoices.truth import Line

CARRIED = "Jumlah pindahan"
BROUGHT = "Pindahan"


def heading_height(layout: Layout) -> float:
    return max(len(column.heading) for column in layout.columns) * layout.line_height + 6


def table(sheet: Sheet, page: Page, y: float) -> float:
    layout = sheet.layout
    edges = [y, y + heading_height(layout)]
    y = _heading(sheet, y)
    if page.brought is not None:
        y = _carry(sheet, BROUGHT, page.brought, y)
        edges.append(y)
    rows = y
    for part in page.parts:
        y = _row(sheet, part, y)
        edges.append(y)
    body = y
    if page.carried is not None:
        if layout.carry_at_bottom:
            y = edges[-1] = body = layout.bottom - row_height(layout)
        y = _carry(sheet, CARRIED, page.carried, y)
        edges.append(y)
    _rules(sheet, edges, rows, body)
    return y


def _heading(sheet: Sheet, y: float) -> float:
    layout = sheet.layout
    high = heading_height(layout)
    left, right = layout.columns[0].x, layout.columns[-1].x + layout.columns[-1].width
    if layout.shaded_heading:
        sheet.shade(left, y, right - left, high)
    for column in layout.columns:
        top = y + (high - len(column.heading) * layout.line_height) / 2
        for text in column.heading:
            _in_cell(sheet, column, top, text, align=layout.heading_align or column.align, font=layout.font.bold)
            top += layout.line_height
    return y + high


def _row(sheet: Sheet, part: Part, y: float) -> float:
    layout = sheet.layout
    top = y + layout.row_gap / 2
    if part.begins:
        for column in layout.columns:
            sign, text = _printed(part.line, column, layout)
            if text:
                _in_cell(sheet, column, top, text, sign=sign, align=column.align)
    column = layout.column("description")
    for text in part.text:
        _in_cell(sheet, column, top, text, align=column.align)
        top += layout.line_height
    return y + row_height(layout, len(part.text))


def _printed(line: Line, column: Column, layout: Layout) -> tuple[str, str]:
    match column.cell:
        case "no":
            return "", str(line.no)
        case "code":
            return "", line.code or ""
        case "hs_code":
            return "", line.hs_code or ""
        case "qty":
            return "", wording.qty(line.qty, layout)
        case "unit":
            return "", line.unit
        case "unit_price":
            return wording.money(line.unit_price, layout)
        case "discount":
            return wording.discount(line.discount, layout)
        case "amount":
            return wording.money(line.amount, layout)
        case "description":
            return "", ""


def _in_cell(
    sheet: Sheet, column: Column, y: float, text: str, *, align: Align, sign: str = "", font: str = ""
) -> None:
    layout = sheet.layout
    left, right = column.x + layout.padding, column.x + column.width - layout.padding
    font = font or layout.font.regular
    needed = width_of(f"{sign} {text}" if sign else text, font, layout.size)
    if needed > right - left + 0.01:
        raise DoesNotFit(f"{sign}{text!r} needs {needed:.1f}, {column.cell} has {right - left:.1f} ({layout.name})")
    if sign:
        sheet.text(left, y, sign, font=font)
    x = {"left": left, "center": (left + right) / 2, "right": right}[align]
    sheet.text(x, y, text, font=font, align=align)


def _carry(sheet: Sheet, label: str, value: Decimal, y: float) -> float:
    layout = sheet.layout
    top = y + layout.row_gap / 2
    amount = layout.column("amount")
    right = amount.x + amount.width - layout.padding
    sign, digits = wording.money(value, layout)
    needed = width_of(f"{sign} {digits}" if sign else digits, layout.font.bold, layout.size)
    # Two thousand lines sum up to more digits than any one of them has: the cell then grows to the left.
    left = min(amount.x + layout.padding, right - needed)
    if sign:
        sheet.text(left, top, sign, font=layout.font.bold)
    sheet.text(right, top, digits, font=layout.font.bold, align="right")
    if layout.carry_label == "description":
        sheet.text(layout.column("description").x + layout.padding, top, label, font=layout.font.bold)
    else:
        sheet.text(left - 3 * layout.padding, top, label, font=layout.font.bold, align="right")
    return y + row_height(layout)


def _rules(sheet: Sheet, edges: list[float], rows: float, body: float) -> None:
    """`rows` to `body` is where the cells are; the carry-overs above and below them are one wide cell each."""
    layout = sheet.layout
    if layout.rules is Rules.NONE:
        return
    left, right = layout.columns[0].x, layout.columns[-1].x + layout.columns[-1].width
    for y in [*edges[:2], edges[-1]] if layout.rules is Rules.HEADING else edges:
        sheet.rule(left, y, right, y)
    if layout.rules is Rules.GRID:
        for x in (left, right):
            sheet.rule(x, edges[0], x, edges[-1])
        for column in layout.columns[1:]:
            sheet.rule(column.x, edges[0], column.x, edges[1])
            sheet.rule(column.x, rows, column.x, body)
