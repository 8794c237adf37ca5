"""The provenance of every value as JSON: page, box, rule, raw text and confidence. The review page draws it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

from waybill_documents.confidence import PROVED
from waybill_documents.extraction import PageSize
from waybill_documents.geometry import Place
from waybill_documents.search_areas import Looked
from waybill_documents.values import Extracted, Scalar, Value


def plain(value: Scalar) -> str | int | bool | None:
    """A value for JSON. Decimals are strings, because a float would not be the exact amount."""
    if isinstance(value, Decimal):
        text = str(value)
        return text if "E" not in text else format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    return value


def data_of(extracted: Extracted) -> dict[str, Any]:
    """The plain values: fields by name, tables as lists of rows."""
    found: dict[str, Any] = {name: plain(value.value) for name, value in extracted.fields.items()}
    for name, rows in extracted.tables.items():
        found[name] = [{column: plain(value.value) for column, value in row.items()} for row in rows]
    return found


def provenance_of(extracted: Extracted) -> dict[str, Any]:
    """The provenance of each value, in the same structure as the data."""
    return {
        "fields": {name: _origin(value) for name, value in extracted.fields.items()},
        "tables": {
            name: [{column: _origin(value) for column, value in row.items()} for row in rows]
            for name, rows in extracted.tables.items()
        },
    }


def pages_of(sizes: Iterable[PageSize]) -> list[dict[str, Any]]:
    """The pages that the boxes refer to."""
    return [{"number": size.number, "width": size.width, "height": size.height, "turn": size.turn} for size in sizes]


def carries_of(extracted: Extracted) -> dict[str, Any]:
    """For each table, the sums that its pages carry over."""
    return {
        table: [
            {
                **place_as_json(carry.place),
                "direction": carry.direction,
                "amount": plain(carry.amount),
                "after_rows": carry.after_rows,
                "raw": carry.raw,
            }
            for carry in carries
        ]
        for table, carries in extracted.carries.items()
    }


def looked_of(looked: Looked) -> dict[str, Any]:
    """For each value that was not found, where it was looked for."""
    return {path: [place_as_json(place) for place in places] for path, places in looked.items()}


def place_as_json(place: Place) -> dict[str, Any]:
    """Page and box, or sheet and cells."""
    if place.cell is not None:
        return {"sheet": place.page, "cell": place.cell}
    return {"page": place.page, "box": place.box}


def _origin(value: Value) -> dict[str, Any]:
    origin: dict[str, Any] = {"rule": value.rule, "raw": value.raw, "confidence": value.confidence}
    if value.unchecked is not None:
        origin["unchecked"] = value.unchecked
    if value.most != PROVED:
        origin["most"] = value.most
    if value.places:
        first, *others = value.places
        origin |= place_as_json(first)
        if others:  # it runs over a line or page break
            origin["continues"] = [place_as_json(place) for place in others]
    return origin
