"""Uploads an object to an object store, in one request if it is small and in parts if it is not.

obstore reads the parts from an iterator and aborts the upload if the iterator raises. If obstore itself is cancelled,
it does not abort; the parts would stay in the bucket, invisible but paid for. So it runs in a task that is never
cancelled, and we stop it by letting the iterator raise.
"""

from __future__ import annotations

import asyncio
import contextlib

import obstore
import structlog
from obstore.store import ObjectStore

from waybill.storage.failures import FAULTS, failure

PART = 5 * 1024 * 1024
"""The smallest part that S3 allows, to save memory: one part is filled while another is sent."""
_AT_ONCE = 2
_PATIENCE = 5.0
"""Seconds for which `abort` waits. If the store hangs, the abort continues in the background."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()
_stopping: set[asyncio.Task[None]] = set()


class _Stopped(Exception):
    """The iterator raises this to make obstore abort."""


class MultipartUpload:
    """Call `abort` unless `finish` succeeded."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        self._store = store
        self._path = path
        self._small: list[bytes] = []
        self._size = 0
        self._feed = _Feed()
        self._parts: asyncio.Task[None] | None = None
        self._stored = False
        """The store has the whole object."""
        self._finished = False
        """And our caller knows it."""

    async def write(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= PART:
            self._small.append(piece)
            return
        if self._parts is None:
            self._parts = asyncio.create_task(self._put_parts())
        while self._small:
            await self._give(self._parts, self._small.pop(0))
        await self._give(self._parts, piece)

    async def finish(self) -> None:
        if self._parts is None:
            whole = b"".join(self._small)
            self._small.clear()
            try:
                await obstore.put_async(self._store, self._path, whole, use_multipart=False)
            except FAULTS as error:
                raise failure(error) from None
        else:
            await self._give(self._parts, None)
            # Shield it, because a cancellation would skip obstore's abort.
            await asyncio.shield(self._parts)
        self._finished = True

    async def abort(self) -> None:
        """Remove what was uploaded, if the store lets us. After `finish` it does nothing."""
        parts = self._parts
        if parts is None:
            return
        self._feed.stop()
        _stopping.add(parts)
        parts.add_done_callback(_forget)
        done, _ = await asyncio.wait([parts], timeout=_PATIENCE)
        if not done:
            log.warning("upload_not_aborted_yet", path=self._path)
        elif self._stored and not self._finished:
            # Its last part was on the way when we were told to stop, so the store has put the object together.
            with contextlib.suppress(*FAULTS):
                await obstore.delete_async(self._store, self._path)

    async def _give(self, parts: asyncio.Task[None], piece: bytes | None) -> None:
        """Pass a piece on, or raise the error that stopped the upload."""
        giving = asyncio.ensure_future(self._feed.give(piece))
        try:
            await asyncio.wait([giving, parts], return_when=asyncio.FIRST_COMPLETED)
        finally:
            giving.cancel()
        if parts.done():
            parts.result()

    async def _put_parts(self) -> None:
        try:
            await obstore.put_async(
                self._store, self._path, self._feed, use_multipart=True, chunk_size=PART, max_concurrency=_AT_ONCE
            )
        except _Stopped:
            return
        except FAULTS as error:
            raise failure(error) from None
        self._stored = True


def _forget(parts: asyncio.Task[None]) -> None:
    _stopping.discard(parts)
    if not parts.cancelled():
        parts.exception()  # retrieve it; the caller has another error already


class _Feed:
    """Passes pieces from one task to another, until the end or a stop."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)
        self._stopped = False

    async def give(self, piece: bytes | None) -> None:
        await self._pieces.put(piece)

    def stop(self) -> None:
        self._stopped = True
        if self._pieces.empty():
            self._pieces.put_nowait(None)  # wake the reader

    def __aiter__(self) -> _Feed:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._pieces.get()
        if self._stopped:
            raise _Stopped
        if piece is None:
            raise StopAsyncIteration
        return piece
