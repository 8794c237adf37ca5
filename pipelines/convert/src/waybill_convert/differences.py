"""The differences between two records of a document, value by value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from waybill_convert.revision_models import Difference, Json


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
    sure_before, sure_after = _confidences(before), _confidences(after)
    old, new = dict(_values(before["data"])), dict(_values(after["data"]))
    return [
        ChangedValue(path, value, sure_after.get(path))
        for path, value in new.items()
        if (value, sure_after.get(path)) != (old.get(path), sure_before.get(path))
    ]


def _values(data: Json) -> Iterator[tuple[str, Any]]:
    """By path: `net`, `lines[213].amount`."""
    for name, value in data.items():
        if isinstance(value, list):
            for index, row in enumerate(value):
                for column, cell in row.items():
                    yield f"{name}[{index}].{column}", cell
        else:
            yield name, value


def _confidences(record: Json) -> dict[str, int]:
    provenance = record["provenance"]
    origins = _values({**provenance["fields"], **provenance["tables"]})
    return {path: origin["confidence"] for path, origin in origins}
