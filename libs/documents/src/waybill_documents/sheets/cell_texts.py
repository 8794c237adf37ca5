"""The filled cells of a file with their names, for a person who writes a mapping. Hidden sheets are shown, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waybill_documents.office.delimited import cells_of
from waybill_documents.office.detection import detect, refuse
from waybill_documents.office.excel import read_cells, shown
from waybill_documents.office.office_limits import OfficeLimits
from waybill_documents.office.text import read_whole
from waybill_documents.sheets.cell_names import cells_name


@dataclass(frozen=True, slots=True)
class SheetTexts:
    """One sheet: the filled cells of each row, as name and text."""

    number: int
    count: int
    name: str | None
    hidden: bool
    rows: Sequence[Sequence[tuple[str, str]]]


def cell_texts(source: Path) -> Iterator[SheetTexts]:
    """The sheets of a workbook or a CSV file. Raises `DocumentRejected` for another file."""
    limits = OfficeLimits()
    kind = detect(source)
    if kind == "text":
        yield SheetTexts(1, 1, None, False, _rows(cells_of(read_whole(source, limits), limits), (0, 0)))
        return
    if kind != "xlsx":
        raise refuse(kind)
    sheets = list(read_cells(source, limits))
    for sheet in sheets:
        yield SheetTexts(sheet.number, len(sheets), sheet.name, sheet.hidden, _rows(sheet.values, sheet.first))


def _rows(cells: Sequence[Sequence[Any]], first: tuple[int, int]) -> list[list[tuple[str, str]]]:
    down, across = first
    rows: list[list[tuple[str, str]]] = []
    for number, row in enumerate(cells, start=down):
        texts = [(cells_name(None, number, at, number, at), shown(cell)) for at, cell in enumerate(row, start=across)]
        filled = [(name, " ⏎ ".join(text.splitlines())) for name, text in texts if text]
        if filled:
            rows.append(filled)
    return rows
