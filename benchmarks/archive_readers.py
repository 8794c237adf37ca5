"""Unpacking a ZIP and reading a bundle of texts as a parser does, and bare loops as their floors.

All run in one process that is prepared as the gateway prepares its parsers. The answers are written to disk, part by
part, as for the service.
"""

from __future__ import annotations

import itertools
import time
import zipfile
from pathlib import Path
from typing import Any

from benchmarks import reader_protocol
from waybill.files.packs import PackReader
from waybill_documents.conversion import convert_text
from waybill_gateway.extract_task import extract
from waybill_gateway.sandbox import garbage_collection
from waybill_gateway.unpack_task import unpack

_MB = 2**20
_STEP = 256 * 1024
_NUMBERS = itertools.count(1)


def bare_zipfile(file: str, _mapping: str) -> int:
    """Read every member with the standard library, and drop what was read."""
    read = 0
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            with archive.open(info) as member:
                while piece := member.read(_STEP):
                    read += len(piece)
    return read


def unpacked(file: str, _mapping: str) -> int:
    """Write every member with its type and hash to the parts of a pack."""
    task = {"unpack": {"limits": {}, "bytes": 64 * _MB, "seconds": 15.0}}
    return _parts(unpack, file, task)


def bare_texts(file: str, _mapping: str) -> int:
    """Make JSON of every text in a pack, in memory."""
    with Path(file).open("rb") as pack:
        return sum(
            len(convert_text(content, time.perf_counter).body)
            for header, content in PackReader(pack, most_bytes=_MB)
            if not header.get("end")
        )


def extracted(file: str, _mapping: str) -> int:
    """The same as a parser does it: within the bounds of a request, and with an answer for each document."""
    return _parts(extract, file, {"extract": {"documents": 64, "bytes": 50 * _MB, "seconds": 15.0}, "problem": {}})


def _parts(work: Any, file: str, task: dict[str, Any]) -> int:
    beside = {"bookmark": f"{file}.bookmark", "scratch": f"{file}.scratch"}
    start, written = None, 0
    while True:
        answer = Path(f"{file}.{next(_NUMBERS)}.answer")  # the service removes it, and so does the measurement
        note = work({**task, **beside, "source": file, "start": start, "alone": False, "blame": None}, answer)
        assert note["status"] == 200, note
        written += answer.stat().st_size
        start = note["next"]
        if start is None:
            garbage_collection.collect()
            return written


if __name__ == "__main__":
    garbage_collection.only_between_documents()
    reader_protocol.serve(
        {"bare zipfile": bare_zipfile, "unpacked": unpacked, "bare texts": bare_texts, "extracted": extracted}
    )
