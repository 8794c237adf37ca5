"""The differences between two records of a document, value by value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from waybill_convert.revision_models import Difference, Json

if TYPE_CHECKING:
    from waybill_documents.values import Extracted, Value

_UNSURE: Json = {"confidence": None}


class ChangedValue(NamedTuple):
    """A value that has changed, or whose confidence has."""

    path: str
    value: Any
    confidence: int | None


def differences(before: Json, after: Json) -> list[Difference]:
    """The values that differ between two records, in the order of the document."""
    old, new = dict(_values(before["data"])), dict(_values(after["data"]))
    return [
        Difference(path, old.get(path), new.get(path))
        for path in dict.fromkeys([*old, *new])
        if old.get(path) != new.get(path)
    ]


def moved(before: Json, after: Extracted) -> list[ChangedValue]:
    """What a page that shows `before` must update. A page asks at every keystroke, so no second record is made."""
    provenance = before["provenance"]
    changed = list(_moved("", before["data"], provenance["fields"], after.fields))
    for name, rows in after.tables.items():
        parts: Iterator[tuple[Json, Json, Mapping[str, Value]]] = zip_longest(
            before["data"].get(name, []), provenance["tables"].get(name, []), rows, fillvalue={}
        )
        for index, (cells, origins, row) in enumerate(parts):
            changed += _moved(f"{name}[{index}].", cells, origins, row)
    return changed


def _moved(path: str, before: Json, origins: Json, after: Mapping[str, Value]) -> Iterator[ChangedValue]:
    """The same for the fields, or for a row. Paths are made only for changes."""
    # Imported here, because the document library needs memory that processes without corrections can do without.
    from waybill_documents.provenance import plain

    for name, value in after.items():
        shown = plain(value.value)
        if value.confidence != origins.get(name, _UNSURE)["confidence"] or shown != before.get(name):
            yield ChangedValue(f"{path}{name}", shown, value.confidence)


def _values(data: Json) -> Iterator[tuple[str, Any]]:
    """By path: `net`, `lines[213].amount`."""
    for name, value in data.items():
        if isinstance(value, list):
            for index, row in enumerate(value):
                for column, cell in row.items():
                    yield f"{name}[{index}].{column}", cell
        else:
            yield name, value
