"""What is computed about a tenant's mapping. These functions run in the side processes of `review_desk`.

A mapping comes from outside: it is compiled there, and never in the process that answers requests.
"""

from __future__ import annotations

import json
import signal
from typing import Any, NamedTuple

from waybill_convert.revision_models import Json
from waybill_documents.mapping_files import MappingFiles

MOST_DIFFERENCES = 50
_MOST_CPU = 3.0
"""Seconds of processor time that a mapping may take to be compiled. It usually takes a few milliseconds, but a schema
can take minutes, and each parser of the gateway would spend them."""


class CheckedMapping(NamedTuple):
    """What a mapping says of itself, or the faults for which it cannot be used."""

    name: str
    title: str
    writes_xml: bool
    embedded: bool
    """Whether it reads e-invoices, and not what is printed on pages."""
    faults: list[Json]


def check_mapping(files: MappingFiles) -> CheckedMapping:
    from waybill_documents.faults import MappingFault
    from waybill_documents.mapping.loader import load

    # The default action of the signal ends the process, also in the middle of a library that never looks up.
    signal.setitimer(signal.ITIMER_PROF, _MOST_CPU)
    try:
        mapping = load(files).mapping
    except MappingFault as fault:
        faults = [
            {"message": str(each), "where": each.where, "key": each.says.key, "params": each.says.params}
            for each in (fault, *fault.more)
        ]
        return CheckedMapping("", "", False, False, faults)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    embedded = mapping.embedded is not None
    return CheckedMapping(mapping.name, mapping.title, mapping.xml is not None or embedded, embedded, [])


def compare_data(record: bytes, expected: Json) -> list[Json]:
    """Where the data that was read differs from what was expected: `{path, expected, found}`, the first ones."""
    found: list[Json] = []
    _compare("", expected, json.loads(record).get("data"), found)
    return found[:MOST_DIFFERENCES]


def _compare(path: str, expected: Any, read: Any, found: list[Json]) -> None:
    if len(found) >= MOST_DIFFERENCES:
        return
    if isinstance(expected, dict) and isinstance(read, dict):
        for name in dict.fromkeys((*expected, *read)):
            _compare(f"{path}.{name}" if path else name, expected.get(name), read.get(name), found)
    elif isinstance(expected, list) and isinstance(read, list):
        for number in range(max(len(expected), len(read))):
            _compare(f"{path}[{number}]", _at(expected, number), _at(read, number), found)
    elif expected != read or isinstance(expected, bool) != isinstance(read, bool):
        found.append({"path": path, "expected": _shown(expected), "found": _shown(read)})


def _at(values: list[Any], number: int) -> Any:
    return values[number] if number < len(values) else None


def _shown(value: Any) -> str | None:
    """A value as a short text; None for what is not there."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:199]}…"
