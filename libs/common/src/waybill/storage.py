"""Where documents and results are kept: the seam behind which a folder or an object store stands.

Rows in Postgres name an object by its key; nothing but this module knows what a key leads to. A stored object
becomes a job's result only through a row that its lease holder writes, so storing alone publishes nothing.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from waybill.errors import NotFound
from waybill.files.atomic import AtomicFile
from waybill.files.paths import folder_under, open_under

CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Stored:
    """What was stored, as it was written: enough to notice later that it is not the same any more."""

    key: str
    bytes: int
    sha256: str


class Storage(Protocol):
    """Objects by key. A key looks like a relative path: `uploads/0197…/invoice.pdf`."""

    async def put(self, key: str, data: bytes | AsyncIterable[bytes]) -> Stored:
        """Store an object, whole or not at all; one already there under the key is replaced."""

    def stream(self, key: str) -> AsyncIterator[bytes]:
        """The object in pieces. NotFound on the first step if there is none."""

    async def get(self, key: str) -> bytes:
        """The whole object, for small ones. NotFound if there is none."""

    async def exists(self, key: str) -> bool: ...

    async def delete(self, key: str) -> None:
        """Remove the object; fine if there is none."""


class LocalStorage:
    """Objects as files in a folder. Every touch of the disk happens in a thread, never on the event loop."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def put(self, key: str, data: bytes | AsyncIterable[bytes]) -> Stored:
        file = await asyncio.to_thread(self._create, key)
        try:
            if isinstance(data, bytes):
                await asyncio.to_thread(file.write, data)
            else:
                async for chunk in data:
                    await asyncio.to_thread(file.write, chunk)
            written = await asyncio.to_thread(file.commit)
        except BaseException:
            # Shielded: a caller who is cancelled twice must not leave the temporary file behind.
            await asyncio.shield(asyncio.to_thread(file.abort))
            raise
        return Stored(key, written.bytes, written.sha256)

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        file = await asyncio.to_thread(self._open, key)
        try:
            while chunk := await asyncio.to_thread(file.read, CHUNK):
                yield chunk
        finally:
            await asyncio.shield(asyncio.to_thread(file.close))

    async def get(self, key: str) -> bytes:
        return await asyncio.to_thread(self._read, key)

    async def exists(self, key: str) -> bool:
        return await asyncio.to_thread(self._exists, key)

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self._delete, key)

    def _create(self, key: str) -> AtomicFile:
        with folder_under(self._root, key, create=True) as (folder, name):
            return AtomicFile(folder, name)

    def _open(self, key: str) -> BinaryIO:
        try:
            return os.fdopen(open_under(self._root, key), "rb")
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"Nothing is stored under {key!r}.") from None

    def _read(self, key: str) -> bytes:
        with self._open(key) as file:
            return file.read()

    def _exists(self, key: str) -> bool:
        try:
            with folder_under(self._root, key) as (folder, name):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return stat.S_ISREG(found.st_mode)

    def _delete(self, key: str) -> None:
        # The folder stays even if it is empty now: somebody may just be storing into it.
        with suppress(FileNotFoundError, NotADirectoryError), folder_under(self._root, key) as (folder, name):
            os.unlink(name, dir_fd=folder)
