"""Measures unpacking a ZIP beside bare `zipfile`, and reading small texts in bundles beside a bare loop.

A parser does more than `zipfile`: it checks the list and each name, counts every byte, recognises each file, hashes it,
and writes it to disk.
"""

from __future__ import annotations

import random
import statistics
import sys
import zipfile
from pathlib import Path

from benchmarks import invoices, reader_processes
from benchmarks.arena import Arena
from benchmarks.figures import paired_ratio
from benchmarks.options import Options
from benchmarks.reader_processes import Readers
from benchmarks.report import Check, Section
from waybill.files.packs import end_frame, frame

_READERS = (sys.executable, "-m", "benchmarks.archive_readers")
_BARE, _OURS = "bare zipfile", "unpacked"
_BARE_TEXTS, _EXTRACTED = "bare texts", "extracted"
_SMALL_FILES = 10_000
_BUNDLE = 64
_TIMES = 3


async def measure(arena: Arena, options: Options) -> Section:
    words = _words(random.Random(17))
    files = {
        "documents": _documents(arena.home / "documents.zip", words, invoices.printed(arena.home, 510).file),
        "small texts": _small_texts(arena.home / "small.zip", words),
        "bundle": _bundle(arena.home / "bundle.pack", words),
    }
    plan = [
        *((files["documents"], reader) for reader in (_BARE, _OURS)),
        *((files["small texts"], reader) for reader in (_BARE, _OURS)),
        *((files["bundle"], reader) for reader in (_BARE_TEXTS, _EXTRACTED)),
    ]
    took: dict[tuple[str, str], list[float]] = {(file.stem, reader): [] for file, reader in plan}
    found: dict[tuple[str, str], int] = {}
    async with reader_processes.readers(_READERS, arena.home) as process:
        for file, reader in plan:
            await process.ask(reader, file)
        for number in range(options.rounds):
            options.say(f"unpack: round {number + 1}")
            for file, reader in plan:
                milliseconds, found[file.stem, reader] = await _ask(process, reader, file)
                took[file.stem, reader].append(milliseconds)
    return _section(took, found)


async def _ask(process: Readers, reader: str, file: Path) -> tuple[float, int]:
    answer = await process.ask(reader, file, times=_TIMES)
    for written in file.parent.glob(f"{file.name}.*.answer"):
        written.unlink()
    return statistics.median(answer.milliseconds), answer.found


def _section(took: dict[tuple[str, str], list[float]], found: dict[tuple[str, str], int]) -> Section:
    def speed(archive: str, reader: str) -> str:
        return f"{found[archive, _BARE] / statistics.median(took[archive, reader]) / 1000:,.0f} MB/s"

    def per_file(archive: str, reader: str, files: int) -> str:
        return f"{statistics.median(took[archive, reader]) / files * 1000:.0f} µs"

    def ratio(archive: str) -> float:
        return paired_ratio(took[archive, _BARE], took[archive, _OURS])

    size = found["documents", _BARE] / 1e6
    bundles = paired_ratio(took["bundle", _EXTRACTED], took["bundle", _BARE_TEXTS])
    return Section(
        title="Unpacking ZIPs and reading bundles, in processor time of the parser",
        heading=("", "bare", "Waybill", "ratio"),
        rows=[
            (
                f"a ZIP of PDFs and texts, {size:,.0f} MB unpacked",
                *(speed("documents", reader) for reader in (_BARE, _OURS)),
                f"{ratio('documents'):.2f} ×",
            ),
            (
                f"a ZIP of {_SMALL_FILES:,} small texts, per file",
                *(per_file("small", reader, _SMALL_FILES) for reader in (_BARE, _OURS)),
                f"{ratio('small'):.2f} ×",
            ),
            (
                f"a bundle of {_BUNDLE} small texts to JSON, per text",
                *(per_file("bundle", reader, _BUNDLE) for reader in (_BARE_TEXTS, _EXTRACTED)),
                f"{1 / bundles:.2f} ×",
            ),
        ],
        checks=[Check.at_least("unpacking documents, to bare zipfile", ratio("documents"), 0.7)],
        notes=["Bare `zipfile` reads and drops; Waybill checks, recognises, hashes and writes to disk as well."],
        numbers={"milliseconds": {f"{archive}, {reader}": each for (archive, reader), each in took.items()}},
    )


def _words(chance: random.Random) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(5000)]


def _text(chance: random.Random, words: list[str], size: int) -> bytes:
    return " ".join(chance.choices(words, k=size // 7)).encode()


def _documents(file: Path, words: list[str], invoice: Path) -> Path:
    chance = random.Random(1)
    pdf = invoice.read_bytes()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(400):
            archive.writestr(f"letters/{number}.txt", _text(chance, words, chance.choice((20_000, 80_000, 250_000))))
            if number % 2:
                archive.writestr(f"invoices/{number}.pdf", pdf)
    return file


def _small_texts(file: Path, words: list[str]) -> Path:
    chance = random.Random(2)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(_SMALL_FILES):
            archive.writestr(f"{number % 100}/{number}.txt", _text(chance, words, 1500))
    return file


def _bundle(file: Path, words: list[str]) -> Path:
    chance = random.Random(3)
    texts = [frame({"no": number, "type": "text"}, _text(chance, words, 1500)) for number in range(_BUNDLE)]
    file.write_bytes(b"".join(texts) + end_frame())
    return file
