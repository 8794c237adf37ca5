"""Measures our extraction on small real invoices, beside invoice2data with its own templates and test files."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Mapping
from pathlib import Path

from benchmarks import invoices, reader_processes
from benchmarks.arena import Arena
from benchmarks.documents import EXTRACTION, PLUMBER, TEXT
from benchmarks.figures import paired_ratio
from benchmarks.options import Options
from benchmarks.report import Section
from waybill_documents.catalogue import names

_PEER = "invoice2data"
_TIMES = 5

Times = dict[str, dict[str, list[float]]]
"""Milliseconds of every round, by file and reader."""


async def time_all(arena: Arena, options: Options, files: Mapping[str, Path]) -> tuple[Times, dict[str, int]]:
    """The times, and how many fields invoice2data found in each file."""
    times: Times = {name: {} for name in files}
    found: dict[str, int] = {}
    async with contextlib.AsyncExitStack() as stack:
        ours = await stack.enter_async_context(reader_processes.readers(reader_processes.OURS, arena.home))
        room = {EXTRACTION: ours, TEXT: ours}
        if options.peers_python is not None:
            command = reader_processes.theirs(options.peers_python)
            peers = await stack.enter_async_context(reader_processes.readers(command, arena.home))
            room |= {_PEER: peers, PLUMBER: peers}
        for name, file in files.items():
            options.say(f"vendors: {name}")
            mapping = invoices.VENDORS[name]
            taking_part = {reader: one for reader, one in room.items() if reader != EXTRACTION or mapping in names()}
            for number in range(options.rounds + 1):
                for reader, process in taking_part.items():
                    answer = await process.ask(reader, file, mapping=mapping, times=_TIMES)
                    if number:  # the first round warms up
                        times[name].setdefault(reader, []).append(statistics.median(answer.milliseconds))
                    if reader == _PEER:
                        found[name] = answer.found
    return times, found


async def measure(arena: Arena, options: Options) -> Section:
    files = invoices.vendors()
    times, found = await time_all(arena, options, files)
    missed = [name for name, fields in found.items() if not fields]
    notes = [] if files else ["The vendors' invoices are not on this machine, so nothing was measured."]
    if missed:
        notes.append(
            f"invoice2data finds nothing in {', '.join(missed)}: its templates need poppler's pdftotext for them."
        )
    return Section(
        title="Reading real invoices, ms of processor time",
        heading=("", "pypdfium2, text", "Waybill, extraction", "invoice2data", "", "pdfplumber, words", ""),
        rows=[_row(name, rows, found.get(name, 0)) for name, rows in times.items()],
        notes=notes,
        numbers={"milliseconds": times, "invoice2data_fields": found},
    )


def _row(name: str, rows: Mapping[str, list[float]], fields: int) -> tuple[str, ...]:
    ours = rows.get(EXTRACTION)
    return (
        name,
        _shown(rows[TEXT]),
        _shown(ours) if ours else "no mapping",
        _shown(rows.get(_PEER)) if fields else "",
        _ratio(rows.get(_PEER) if fields else None, ours),
        _shown(rows.get(PLUMBER)),
        _ratio(rows.get(PLUMBER), ours),
    )


def _shown(times: list[float] | None) -> str:
    return f"{statistics.median(times):,.1f}" if times else ""


def _ratio(theirs: list[float] | None, ours: list[float] | None) -> str:
    return f"{paired_ratio(theirs, ours):.1f} ×" if theirs and ours else ""
