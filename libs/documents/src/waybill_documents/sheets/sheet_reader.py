"""Reads the cells of a workbook or a CSV file, sheet by sheet.

Hidden sheets are left out unless the mapping names them: nobody who looks at the workbook sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.mapping.model import Mapping
from waybill_documents.messages import DocumentMessage
from waybill_documents.office.delimited import cells_of
from waybill_documents.office.excel import read_cells
from waybill_documents.office.office_limits import OfficeLimits
from waybill_documents.office.regions import Merged
from waybill_documents.office.text import read_whole
from waybill_documents.sheets.sheet_choice import means

_LONGEST_NAME = 100
"""Characters of a sheet's name. Excel allows 31; a longer one would be repeated for every value."""

SheetKind = Literal["xlsx", "text"]
"""What can be read as sheets: workbooks, and texts of separated values."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """The cells of one sheet, from the first filled one on."""

    number: int
    name: str | None
    cells: Sequence[Sequence[Any]]
    merged: Merged = ()
    """Merged cells, relative to the first one."""
    first: tuple[int, int] = (0, 0)
    """Row and column of the first cell, counted from 0."""


def read_sheets(source: Path, kind: SheetKind, mapping: Mapping, limits: OfficeLimits) -> Iterator[Sheet]:
    """The sheets that the mapping reads. Raises `DocumentRejected` if the workbook has none of them."""
    if kind == "text":
        yield Sheet(1, None, cells_of(read_whole(source, limits), limits))
        return
    found = False
    for cells in read_cells(source, limits, _chosen(mapping)):
        found = True
        yield Sheet(cells.number, cells.name[:_LONGEST_NAME], cells.values, cells.merged, cells.first)
    if not found:
        wanted = [str(each) for each in mapping.sheets or ()]
        message = DocumentMessage("sheet.none_visible")
        if wanted:
            message = DocumentMessage("sheet.none_wanted", mapping=mapping.title, sheets=wanted)
        raise DocumentRejected(FaultCode.NOT_RECOGNISED, message)


def _chosen(mapping: Mapping) -> Callable[[int, str, bool], bool]:
    by_rules = (*(rule.sheet for rule in mapping.fields.values()), *(rule.sheet for rule in mapping.tables.values()))
    named = [choice for choice in by_rules if choice is not None]
    wanted = mapping.sheets

    def is_read(number: int, name: str, hidden: bool) -> bool:
        if any(means(each, number, name) for each in (*named, *(wanted or ()))):
            return True
        return wanted is None and not hidden

    return is_read
