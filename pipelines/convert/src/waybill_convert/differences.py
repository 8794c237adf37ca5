"""The differences between two records of a document, value by value."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from waybill_convert.revision_models import Difference, Json

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


def moved(before: Json, after: Json) -> list[ChangedValue]:
    """What a page that shows `before` must update."""
    changed = list(
        _moved("", before["data"], after["data"], before["provenance"]["fields"], after["provenance"]["fields"])
    )
    for name, rows in after["data"].items():
        if isinstance(rows, list):
            old, new = before["provenance"]["tables"].get(name, []), after["provenance"]["tables"].get(name, [])
            parts: Iterator[tuple[Json, Json, Json, Json]] = zip_longest(
                before["data"].get(name, []), rows, old, new, fillvalue={}
            )
            for index, (cells_before, cells, sure_before, sure) in enumerate(parts):
                changed += _moved(f"{name}[{index}].", cells_before, cells, sure_before, sure)
    return changed


def _moved(path: str, before: Json, after: Json, sure_before: Json, sure_after: Json) -> Iterator[ChangedValue]:
    """The same for the fields, or for a row. A page asks at every keystroke, so paths are made only for changes."""
    for name, value in after.items():
        if isinstance(value, list):
            continue
        old, new = sure_before.get(name, _UNSURE)["confidence"], sure_after.get(name, _UNSURE)["confidence"]
        if old != new or value != before.get(name):
            yield ChangedValue(f"{path}{name}", value, new)


def _values(data: Json) -> Iterator[tuple[str, Any]]:
    """By path: `net`, `lines[213].amount`."""
    for name, value in data.items():
        if isinstance(value, list):
            for index, row in enumerate(value):
                for column, cell in row.items():
                    yield f"{name}[{index}].{column}", cell
        else:
            yield name, value
