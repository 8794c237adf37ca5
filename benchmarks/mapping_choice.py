"""Measures what it costs that a document chooses its mapping among a hundred, beside one mapping that is named.

All mappings come with the document, as a tenant's do, and are read and compiled as the gateway's parsers do it. The
others are for other vendors' invoices in the same language, so they share words with the document: each one is a
candidate to the end.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import invoices, reader_processes
from benchmarks.arena import Arena
from benchmarks.figures import Spread, paired_ratio
from benchmarks.options import Options
from benchmarks.report import Check, Section
from waybill_documents.catalogue import FILE, folder

_LENGTHS = (30, 510)
_CANDIDATES = 100
_TIMES = {30: 20, 510: 5}
_MOST = 1.2


@dataclass(frozen=True)
class Sent:
    """A way to ask, and the mappings that come with the document."""

    name: str
    reader: str
    mappings: Path


async def measure(arena: Arena, options: Options) -> Section:
    files = [invoices.printed(arena.home, lines) for lines in _LENGTHS]
    ways = (
        Sent("one mapping, named", "named", _written(arena.home / "one.json", 1)),
        Sent("auto, one candidate", "auto", _written(arena.home / "one.json", 1)),
        Sent(f"auto, {_CANDIDATES} candidates", "auto", _written(arena.home / "many.json", _CANDIDATES)),
    )
    found: dict[str, dict[int, list[float]]] = {way.name: {lines: [] for lines in _LENGTHS} for way in ways}
    async with reader_processes.readers(reader_processes.OURS, arena.home) as process:
        for way in ways:
            await process.ask(way.reader, files[0].file, mapping=str(way.mappings))
        for number in range(options.rounds):
            for file in files:
                options.say(f"auto: round {number + 1}, {file.lines:,} lines")
                for way in ways:
                    times = _TIMES[file.lines]
                    answer = await process.ask(way.reader, file.file, mapping=str(way.mappings), times=times)
                    found[way.name][file.lines].append(statistics.median(answer.milliseconds))
    return _section(files, ways, found)


def _section(
    files: Sequence[invoices.Printed], ways: Sequence[Sent], found: dict[str, dict[int, list[float]]]
) -> Section:
    named, *_, many = (found[way.name] for way in ways)
    return Section(
        title="Choosing a mapping, PDF to XML, ms of processor time",
        heading=("", *(f"{file.lines:,} lines, {file.pages} {_pages(file.pages)}" for file in files)),
        rows=[(way.name, *(_shown(found[way.name][file.lines]) for file in files)) for way in ways],
        checks=[
            Check.at_most(
                f"{_CANDIDATES} candidates, to one mapping that is named, {file.lines:,} lines",
                paired_ratio(many[file.lines], named[file.lines]),
                _MOST,
            )
            for file in files
        ],
        notes=[
            f"The {_CANDIDATES} mappings that come with the document are {ways[-1].mappings.stat().st_size:,} bytes."
        ],
        numbers={
            "milliseconds": {name: {str(lines): ms for lines, ms in rows.items()} for name, rows in found.items()}
        },
    )


def _written(file: Path, count: int) -> Path:
    """The form field with that many mappings: the one for the document, and others that share words with it."""
    shipped = folder() / invoices.MAPPING
    first = json.loads((shipped / FILE).read_bytes())
    schemas = {first["xml"]["xsd"]: (shipped / first["xml"]["xsd"]).read_text()}
    others = [_other(number) for number in range(1, count)]
    file.write_text(json.dumps([_entry(first, schemas), *(_entry(other, {}) for other in others)]))
    return file


def _other(number: int) -> dict[str, Any]:
    models = [*invoices.VENDORS.values()]
    other: dict[str, Any] = json.loads((folder() / models[number % len(models)] / FILE).read_bytes())
    phrases = [f"PT Vendor {number}", "INVOICE", "NPWP", "Jatuh Tempo"]
    return {**other, "name": f"vendor_{number}_v1", "title": f"Vendor {number}", "recognise": {"all": phrases}}


def _entry(mapping: dict[str, Any], schemas: dict[str, str]) -> dict[str, Any]:
    document = json.dumps(mapping, indent=2)
    sha256 = hashlib.sha256(document.encode()).hexdigest()
    return {"name": mapping["name"], "sha256": sha256, "document": document, "schemas": schemas}


def _pages(count: int) -> str:
    return "page" if count == 1 else "pages"


def _shown(values: Sequence[float]) -> str:
    spread = Spread.of(values)
    return f"{spread.median:,.1f} ({spread.low:,.1f} to {spread.high:,.1f})"
