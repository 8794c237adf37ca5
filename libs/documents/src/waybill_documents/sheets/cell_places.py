"""Names the cells that values were read from, and takes exact values from typed cells.

What comes out of the extraction has places on a page that nobody sees. Here they become cells.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from waybill_documents.extraction import Extraction
from waybill_documents.faults import Finding
from waybill_documents.geometry import Place
from waybill_documents.locales import LocaleRules
from waybill_documents.mapping.model import ColumnRule, FieldRule
from waybill_documents.mapping.model import Mapping as MappingModel
from waybill_documents.messages import DocumentMessage
from waybill_documents.sheets.cell_names import cells_name
from waybill_documents.sheets.layout import LaidOutSheet
from waybill_documents.sheets.typed_cells import is_typed, printed, value_of
from waybill_documents.values import Carry, Extracted, Value

Cells = tuple[int, int, int, int]
"""First and last row and column of a rectangle, within the filled part of the sheet: top, left, bottom, right."""


def named_by_cells(
    extraction: Extraction, mapping: MappingModel, locale: LocaleRules, sheets: Sequence[LaidOutSheet]
) -> Extraction:
    """The extraction with cells instead of boxes. The values of typed cells are exact from here on."""
    by_page = {sheet.page.number: sheet for sheet in sheets}
    extracted = extraction.extracted
    for name, value in extracted.fields.items():
        _settle(value, mapping.fields[name], locale, by_page)
    for table, rows in extracted.tables.items():
        rules = mapping.tables[table].columns
        for row in rows:
            for column, value in row.items():
                _settle(value, rules.get(column), locale, by_page)
    carries = {table: [_carry(carry, by_page) for carry in carries] for table, carries in extracted.carries.items()}
    return replace(
        extraction,
        extracted=Extracted(extracted.fields, extracted.tables, carries, extracted.pages),
        findings=[_finding(finding, by_page) for finding in extraction.findings],
        looked={path: tuple(_place(each, by_page) for each in places) for path, places in extraction.looked.items()},
    )


def _settle(
    value: Value, rule: FieldRule | ColumnRule | None, locale: LocaleRules, sheets: Mapping[int, LaidOutSheet]
) -> None:
    if not value.places:
        return
    if rule is not None and len(value.places) == 1 and value.value is not None:
        cell = _only_cell(value.places[0], sheets)
        is_whole = is_typed(cell) and value.raw == " ".join(printed(cell, locale).split())
        as_printed = not isinstance(rule, ColumnRule) or (rule.pattern is None and value.raw not in rule.empty)
        if is_whole and as_printed:
            exact = value_of(cell, rule.type)
            value.value = value.value if exact is None else exact
    value.places = tuple(_place(place, sheets) for place in value.places)


def _only_cell(place: Place, sheets: Mapping[int, LaidOutSheet]) -> Any:
    sheet = sheets[place.page]
    top, left, bottom, right = _cells(place, sheet)
    if (top, left) == (bottom, right) or sheet.covers.get((top, left)) == (bottom, right):
        row = sheet.cells[top]
        return row[left] if left < len(row) else None
    return None


def _cells(place: Place, sheet: LaidOutSheet) -> Cells:
    """The cells that a box touches."""
    left, top, right, bottom = place.box
    grid = sheet.grid
    first = max(0, bisect_right(grid.lefts, left + 0.01) - 1)
    last = max(first, bisect_left(grid.lefts, right - 0.01) - 1)
    upper = max(0, bisect_right(grid.tops, top + 0.01) - 1)
    lower = max(upper, bisect_left(grid.tops, bottom - 0.01) - 1)
    return upper, first, min(lower, len(grid.tops) - 2), min(last, len(grid.lefts) - 2)


def _place(place: Place, sheets: Mapping[int, LaidOutSheet]) -> Place:
    if place.cell is not None:
        return place
    sheet = sheets[place.page]
    top, left, bottom, right = _cells(place, sheet)
    down, across = sheet.grid.first
    top, left, bottom, right = top + down, left + across, bottom + down, right + across
    name = cells_name(sheet.grid.name, top, left, bottom, right)
    return Place(sheet.grid.number, (left, top, right + 1, bottom + 1), name)


def _carry(carry: Carry, sheets: Mapping[int, LaidOutSheet]) -> Carry:
    place = _place(carry.place, sheets)
    return replace(carry, page=place.page, place=place)


def _finding(finding: Finding, sheets: Mapping[int, LaidOutSheet]) -> Finding:
    if finding.page is None or finding.box is None:
        return replace(finding, says=_of_sheets(finding.says))
    place = _place(Place(finding.page, finding.box), sheets)
    # Sentences say `[ on page {page}]` and `[ in {cell}]`: a sheet has no pages.
    says = finding.says.without("page", "later_page").adding(cell=place.cell)
    return replace(finding, says=says, page=place.page, box=place.box, cell=place.cell)


def _of_sheets(says: DocumentMessage) -> DocumentMessage:
    """A sentence that would speak of pages."""
    if says.key == "field.no_label":
        return DocumentMessage("field.no_label_on_sheets", field=says.params["field"], labels=says.params["labels"])
    if says.key == "table.missing":
        return DocumentMessage("table.missing_on_sheets", table=says.params["table"])
    return says
