"""The grid of a table on a sheet, whose columns are known and need not be found."""

from __future__ import annotations

from itertools import pairwise

from waybill_documents.geometry import Box, SheetGrid
from waybill_documents.tables.grid import Grid
from waybill_documents.tables.header import Header


def ruled_grid(header: Header, sheet: SheetGrid) -> Grid:
    """Each column of the sheet under its header. A header of merged cells is above several columns.

    Columns without a header belong to nobody: a value in them never becomes part of its neighbour.
    """
    owners = [_owner(header, left, right) for left, right in pairwise(sheet.lefts)]
    names: list[str] = []
    edges: list[float] = []
    boxes: list[Box] = []
    strangers = set(header.strangers)
    for column, owner in enumerate(owners):
        left, right = sheet.lefts[column], sheet.lefts[column + 1]
        if owner is not None and names and names[-1] == owner:
            boxes[-1] = (boxes[-1][0], boxes[-1][1], right, boxes[-1][3])
            continue
        if names:
            edges.append(left)
        name = owner if owner is not None and owner not in names else f"#blank {column}"
        if name != owner:
            strangers.add(name)
        names.append(name)
        boxes.append((left, 0.0, right, 0.0))
    return Grid(tuple(names), tuple(edges), tuple(boxes), frozenset(strangers))


def _owner(header: Header, left: float, right: float) -> str | None:
    """The column of the table whose header is above this column of the sheet."""
    return next((name for name, box in header.boxes.items() if box[0] < right - 0.01 and left < box[2] - 0.01), None)
