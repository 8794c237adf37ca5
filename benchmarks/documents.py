"""Measures time and memory for reading long invoices, beside bare pypdfium2 and pdfplumber.

All readers read the same files in the same rounds, on one core, in a process that has already read one. pdfplumber only
finds words; Waybill also finds the table over all pages and the fields, checks that everything adds up, and writes
validated XML.
"""

from __future__ import annotations

import contextlib
import statistics
from dataclasses import dataclass

from benchmarks import invoices, reader_processes
from benchmarks.arena import Arena
from benchmarks.figures import Spread, paired_ratio
from benchmarks.invoices import Printed
from benchmarks.options import Options
from benchmarks.reader_processes import Readers
from benchmarks.report import Check, Section

XML, EXTRACTION, WORDS = "xml", "extraction", "words"
TEXT, BOXES, DIRECT, PLUMBER = "pdfium text", "pdfium boxes", "pdfium direct", "pdfplumber words"
CORRECTION = "correction"
NAMES = {
    XML: "Waybill, PDF to XML",
    EXTRACTION: "Waybill, extraction alone",
    WORDS: "Waybill, words with boxes",
    TEXT: "pypdfium2, text",
    CORRECTION: "Waybill, what a correction would change",
    BOXES: "pypdfium2, character boxes",
    DIRECT: "pdfium, character boxes by direct calls",
    PLUMBER: "pdfplumber, words",
}
_TIMES = {PLUMBER: 1}
_LENGTHS = (510, 2000)
_SHORT = 30
_MEMORY_LENGTHS = (_SHORT, 510, 2000)


@dataclass(frozen=True)
class Memory:
    """Megabytes of a fresh process that reads one document of each length."""

    words: dict[int, float]
    xml: dict[int, float]


async def time_all(arena: Arena, options: Options, files: list[Printed]) -> dict[str, dict[int, list[float]]]:
    """Milliseconds of every round, by reader and number of lines."""
    found: dict[str, dict[int, list[float]]] = {}
    async with contextlib.AsyncExitStack() as stack:
        ours = await stack.enter_async_context(reader_processes.readers(reader_processes.OURS, arena.home))
        room: dict[str, Readers] = dict.fromkeys((XML, EXTRACTION, WORDS, CORRECTION, TEXT, BOXES, DIRECT), ours)
        if options.peers_python is not None:
            command = reader_processes.theirs(options.peers_python)
            room[PLUMBER] = await stack.enter_async_context(reader_processes.readers(command, arena.home))
        warm_up = invoices.printed(arena.home, _SHORT)
        for reader, process in room.items():
            await process.ask(reader, warm_up.file, mapping=invoices.MAPPING)
            found[reader] = {file.lines: [] for file in files}
        for number in range(options.rounds):
            for file in files:
                options.say(f"documents: round {number + 1}, {file.lines:,} lines")
                for reader, process in room.items():
                    answer = await process.ask(reader, file.file, mapping=invoices.MAPPING, times=_TIMES.get(reader, 5))
                    found[reader][file.lines].append(statistics.median(answer.milliseconds))
    return found


async def weigh(arena: Arena) -> Memory:
    """Measure the memory that a document adds to a process that has read a short one before."""
    memory = Memory({}, {})
    warm_up = invoices.printed(arena.home, _SHORT)
    for reader, found in ((WORDS, memory.words), (XML, memory.xml)):
        for lines in _MEMORY_LENGTHS:
            file = invoices.printed(arena.home, lines)
            async with reader_processes.readers(reader_processes.OURS, arena.home) as process:
                await process.ask(reader, warm_up.file, mapping=invoices.MAPPING)
                answer = await process.ask(reader, file.file, mapping=invoices.MAPPING)
            found[lines] = max(0.0, answer.peak_mb - answer.before_mb)
    return memory


async def measure(arena: Arena, options: Options) -> Section:
    options.say("documents: printing invoices")
    files = [invoices.printed(arena.home, lines) for lines in _LENGTHS]
    times = await time_all(arena, options, files)
    options.say("documents: memory")
    return _section(files, times, await weigh(arena))


def _section(files: list[Printed], times: dict[str, dict[int, list[float]]], memory: Memory) -> Section:
    reference, long = files
    ours = times[XML][reference.lines]
    checks = [
        Check.at_most(
            f"{reference.lines} lines to XML, to character boxes",
            paired_ratio(ours, times[BOXES][reference.lines]),
            3.0,
        ),
        Check.at_most(
            f"{reference.lines} lines to XML, to character boxes by direct calls",
            paired_ratio(ours, times[DIRECT][reference.lines]),
            2.5,
        ),
        Check.at_most(
            f"what a correction would change in {reference.lines} lines",
            statistics.median(times[CORRECTION][reference.lines]),
            60.0,
            "{:.0f} ms",
        ),
        Check.at_most(
            f"{long.lines:,} lines to XML, to {reference.lines}", paired_ratio(times[XML][long.lines], ours), 4.4
        ),
    ]
    if PLUMBER in times:
        ratio = paired_ratio(times[PLUMBER][reference.lines], ours)
        checks.insert(1, Check.at_least(f"{reference.lines} lines to XML, faster than pdfplumber's words", ratio, 5.0))
    spreads = {reader: {lines: Spread.of(found) for lines, found in rows.items()} for reader, rows in times.items()}
    return Section(
        title="Reading one invoice, ms of processor time",
        heading=(
            "",
            *(f"{file.lines:,} lines, {file.pages} pages" for file in files),
            f"to {reference.lines}",
            "PDF to XML takes",
        ),
        rows=[
            (
                NAMES[reader],
                *(_shown(spreads[reader][file.lines]) for file in files),
                f"{paired_ratio(rows[long.lines], rows[reference.lines]):.2f} ×",
                "" if reader == XML else f"{paired_ratio(ours, rows[reference.lines]):.2f} × of it",
            )
            for reader, rows in times.items()
        ],
        checks=checks,
        notes=[
            f"Memory a document adds, by its lines: words {_weights(memory.words)}; to XML {_weights(memory.xml)}.",
            *([] if PLUMBER in times else ["pdfplumber is not installed; `make bench` installs it."]),
        ],
        numbers={
            "pages": {str(file.lines): file.pages for file in files},
            "milliseconds": {
                reader: {str(lines): found for lines, found in rows.items()} for reader, rows in times.items()
            },
            "memory_mb": {
                "words": {str(lines): mb for lines, mb in memory.words.items()},
                "xml": {str(lines): mb for lines, mb in memory.xml.items()},
            },
        },
    )


def _shown(spread: Spread) -> str:
    return f"{spread.median:,.0f} ({spread.low:,.0f} to {spread.high:,.0f})"


def _weights(megabytes: dict[int, float]) -> str:
    return ", ".join(f"{lines:,}: {mb:.1f} MB" for lines, mb in megabytes.items())
