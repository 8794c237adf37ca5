"""Records where a missing value was looked for, so that a person can check the same places on the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from waybill_documents.fields import FieldSearch
from waybill_documents.geometry import Box, Place
from waybill_documents.mapping.model import FieldRule, TableRule
from waybill_documents.mapping.model import Mapping as MappingModel
from waybill_documents.tables.table_reader import TableReader
from waybill_documents.values import Extracted, Row

if TYPE_CHECKING:
    from waybill_documents.extraction import PageSize

Looked = dict[str, tuple[Place, ...]]
"""By path, as in `net`, `lines` and `lines[213].amount`."""

_BELOW = 3
"""The height of the area under a label where its value should be, in heights of the label."""


def looked_for(
    mapping: MappingModel,
    extracted: Extracted,
    searches: Iterable[FieldSearch],
    readers: Mapping[str, TableReader],
    sizes: list[PageSize],
) -> Looked:
    """The places for fields without a value, tables without rows, and missing required columns and cells."""
    looked: Looked = {}
    for search in searches:
        value = extracted.fields[search.name]
        if search.rule.constant is None and value.raw == "" and not value.places:
            looked[search.name] = tuple(_places(search, sizes))
    for table, reader in readers.items():
        rows = extracted.tables[table]
        if not rows:
            looked[table] = tuple(_whole(size) for size in sizes)
        for column, header in reader.missing.items():
            looked[f"{table}.{column}"] = (header,)
        looked |= _cells(table, mapping.tables[table], rows)
    return looked


def _places(search: FieldSearch, sizes: list[PageSize]) -> Iterator[Place]:
    """The label and the area beside it; without a label, the part of each page that was searched."""
    label = search.result.label
    if label is not None:
        page = next(size for size in sizes if size.number == label.page)
        yield label
        yield Place(label.page, _beside(search.rule, label.box, page))
        return
    for size in sizes:
        if (search.rule.page == "first" and size.number > 1) or (search.rule.page == "last" and size is not sizes[-1]):
            continue
        area = search.rule.area
        if area is None:
            yield _whole(size)
        else:
            wide, high = size.width / 100, size.height / 100
            yield _place(size.number, (area.left * wide, area.top * high, area.right * wide, area.bottom * high))


def _beside(rule: FieldRule, label: Box, page: PageSize) -> Box:
    left, top, right, bottom = label
    under = min(page.height, bottom + _BELOW * (bottom - top))
    if rule.direction == "right":
        return right, top, page.width, bottom
    return left, bottom if rule.direction == "below" else top, page.width, under


def _cells(table: str, rule: TableRule, rows: list[Row]) -> Looked:
    """Where the row and the column cross, for cells that every row must have."""
    looked: Looked = {}
    needed = [name for name, column in rule.columns.items() if column.required and column.default is None]
    for name in needed:
        if all(name not in row or row[name].value is not None for row in rows):
            continue
        printed = [place.box for row in rows if name in row for place in row[name].places]
        if not printed:
            continue  # the column itself is missing
        left, right = min(box[0] for box in printed), max(box[2] for box in printed)
        for index, row in enumerate(rows):
            if name not in row or row[name].value is not None or row[name].places:
                continue
            beside = [place for value in row.values() for place in value.places[:1]]
            if beside:
                page = beside[0].page
                here = [place.box for place in beside if place.page == page]
                box = (left, min(box[1] for box in here), right, max(box[3] for box in here))
                looked[f"{table}[{index}].{name}"] = (Place(page, box),)
    return looked


def _whole(size: PageSize) -> Place:
    return _place(size.number, (0, 0, size.width, size.height))


def _place(page: int, box: Box) -> Place:
    left, top, right, bottom = box
    return Place(page, (round(left, 2), round(top, 2), round(right, 2), round(bottom, 2)))
