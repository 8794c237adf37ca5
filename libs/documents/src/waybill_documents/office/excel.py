"""Reads Excel workbooks: one page per sheet, with cells as Excel shows them without formatting.

calamine reads the values that Excel last computed. Numbers are written with the fifteen digits that Excel keeps, so
that the floats they are stored as never show.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from python_calamine import CalamineSheet, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_documents.office.office_limits import Budget, OfficeLimits
from waybill_documents.office.package import Package, damaged, open_package
from waybill_documents.office.regions import Merged, find_tables
from waybill_documents.office.sheets import check_workbook
from waybill_documents.plain_document import PlainDocument, PlainPage, PlainTable

_EXACT = 2**53
"""Up to here every whole number has an exact float."""


def read_excel(path: Path, limits: OfficeLimits | None = None) -> PlainDocument:
    """The sheets and tables of an xlsx or xlsm; macros are ignored."""
    limits = limits or OfficeLimits()
    budget = Budget(limits)
    sheets = [_sheet(cells, budget) for cells in read_cells(path, limits)]
    return PlainDocument(
        kind="xlsx",
        pages=tuple(page for page, _ in sheets),
        tables=tuple(table for _, tables in sheets for table in tables),
    )


@dataclass(frozen=True, slots=True)
class SheetCells:
    """The values of one sheet, from the first filled cell on."""

    number: int
    name: str
    hidden: bool
    values: list[list[Any]]
    merged: Merged
    """Relative to the first filled cell."""
    first: tuple[int, int]
    """Row and column of that cell, counted from 0."""


def read_cells(
    path: Path, limits: OfficeLimits, wanted: Callable[[int, str, bool], bool] | None = None
) -> Iterator[SheetCells]:
    """The sheets that are wanted, by number, name and whether they are hidden; without a choice, all of them."""
    package = open_package(path, limits)
    check_workbook(package, limits)
    workbook = _opened(package)
    names = [sheet for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    if len(names) > limits.sheets:
        raise DocumentRejected(
            FaultCode.TOO_MANY_PAGES, DocumentMessage("workbook.too_many_sheets", sheets=len(names), most=limits.sheets)
        )
    for number, metadata in enumerate(names, start=1):
        hidden = metadata.visible != SheetVisibleEnum.Visible
        if wanted is None or wanted(number, metadata.name, hidden):
            yield SheetCells(number, metadata.name, hidden, *_values(workbook, metadata.name))


def _sheet(sheet: SheetCells, budget: Budget) -> tuple[PlainPage, list[PlainTable]]:
    values = sheet.values
    cells = [[shown(value) for value in row] for row in values]
    budget.spend(2 * sum(len(text) + 1 for row in cells for text in row))

    def is_text(row: int, column: int) -> bool:
        return isinstance(values[row][column], str)

    page = PlainPage(number=sheet.number, text=_text(cells), name=sheet.name, hidden=sheet.hidden)
    islands = find_tables(cells, sheet.merged, is_text)
    return page, [PlainTable(page=sheet.number, rows=island.rows, title=island.title) for island in islands]


def shown(value: Any) -> str:
    """A cell as text: shortest exact numbers, ISO dates, TRUE and FALSE as Excel writes them."""
    show = _SHOWN.get(type(value))
    return show(value) if show else ""


def _string(value: str) -> str:
    return value.replace("\r\n", "\n").replace("\r", "\n").strip()


def _boolean(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def _number(value: float) -> str:
    # Excel keeps 15 digits, so 0.1 + 0.2 is 0.3, here as well. Most numbers have fewer.
    text = repr(value)
    if len(text) < 17 and "e" not in text and "n" not in text:
        return text.removesuffix(".0") if value else "0"
    if not math.isfinite(value):
        return text
    if abs(value) < _EXACT and value == int(value):
        return str(int(value))
    exact = Decimal(f"{value:.15g}").normalize()
    return f"{exact:f}" if -20 < exact.adjusted() < 21 else f"{exact:E}"


def _moment(value: datetime) -> str:
    return _second(value).isoformat()


def _time(value: time) -> str:
    return _second(datetime.combine(date(2000, 1, 1), value)).time().isoformat()


def _second(value: datetime) -> datetime:
    """Round to the second. Times are stored as fractions of a day and may be off by a millisecond."""
    if 0 < value.microsecond < 1000 or value.microsecond >= 999_000:
        return (value + timedelta(microseconds=500_000)).replace(microsecond=0)
    return value


def _duration(value: timedelta) -> str:
    seconds = round(value.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


_SHOWN: dict[type, Callable[[Any], str]] = {
    str: _string,
    bool: _boolean,
    int: str,
    float: _number,
    datetime: _moment,
    date: date.isoformat,
    time: _time,
    timedelta: _duration,
}


def _text(cells: Sequence[Sequence[str]]) -> str:
    return "\n".join("\t".join(text.replace("\n", " ") for text in row).rstrip("\t") for row in cells if any(row))


def _opened(package: Package) -> CalamineWorkbook:
    with _at_fault():
        return CalamineWorkbook.from_filelike(package.repacked())


def _values(workbook: CalamineWorkbook, name: str) -> tuple[list[list[Any]], Merged, tuple[int, int]]:
    """The cells from the first filled one on, the merged ranges relative to it, and its row and column."""
    with _at_fault():
        sheet: CalamineSheet = workbook.get_sheet_by_name(name)
        values = sheet.to_python(skip_empty_area=True)
        top, left = sheet.start or (0, 0)
        merged = [
            ((first[0] - top, first[1] - left), (last[0] - top, last[1] - left))
            for first, last in sheet.merged_cell_ranges or ()
            if first[0] >= top and first[1] >= left
        ]
    return values, merged, (top, left)


@contextlib.contextmanager
def _at_fault() -> Iterator[None]:
    """Turns every error of calamine into a damaged file, including a Rust panic, which is not an `Exception`."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise damaged() from error
        raise
