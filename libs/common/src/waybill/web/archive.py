"""A ZIP archive that is made while it is sent: memory holds a piece of one file, however many files there are."""

from __future__ import annotations

import asyncio
import zipfile
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import IO, cast


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    name: str
    modified: datetime
    data: AsyncIterable[bytes]


class _Outbox:
    """A file that cannot be rewound, which makes the ZIP writer describe each entry after its data."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        taken, self._written = bytes(self._written), bytearray()
        return taken


async def zipped(entries: AsyncIterable[ArchiveEntry]) -> AsyncIterator[bytes]:
    """The archive in pieces. Threads do the compression, so that other requests are not held up."""
    outbox = _Outbox()
    archive = zipfile.ZipFile(cast("IO[bytes]", outbox), "w", zipfile.ZIP_DEFLATED)
    async for entry in entries:
        info = zipfile.ZipInfo(entry.name, entry.modified.timetuple()[:6])
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        # The size is not known yet, so always leave room for one that needs 64 bits.
        with archive.open(info, "w", force_zip64=True) as file:
            async for chunk in entry.data:
                await asyncio.to_thread(file.write, chunk)
                if ready := outbox.take():
                    yield ready
        if ready := outbox.take():
            yield ready
    archive.close()
    yield outbox.take()
