"""A storage whose operations are spans: what was stored or read, how much, and how long it took.

An operation is one span, however many pieces the object has. A key is made of a job's id and never of a file's name.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, cast

from waybill.storage.interface import Stored
from waybill.storage.storage_wrapper import StorageWrapper
from waybill.telemetry import spans


class TracedStorage(StorageWrapper):
    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, limit: int | None = None) -> Stored:
        with spans.span("storage put", kind="client", attributes={"waybill.storage.key": key}) as span:
            stored = await self._storage.put(key, data, limit=limit)
            span.set({"waybill.storage.bytes": stored.bytes})
            return stored

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        chunks = self._storage.stream(key, start, end)
        return _traced(key, chunks) if spans.on() else chunks

    async def get(self, key: str) -> bytes:
        with spans.span("storage get", kind="client", attributes={"waybill.storage.key": key}) as span:
            found = await self._storage.get(key)
            span.set({"waybill.storage.bytes": len(found)})
            return found

    async def delete(self, key: str) -> None:
        with spans.span("storage delete", kind="client", attributes={"waybill.storage.key": key}):
            await self._storage.delete(key)

    async def delete_many(self, keys: Sequence[str]) -> None:
        with spans.span("storage delete", kind="client", attributes={"waybill.storage.objects": len(keys)}):
            await self._storage.delete_many(keys)


async def _traced(key: str, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks, and a span when they end. It is never the current span: between two chunks, the reader works."""
    begun, size, error = time.time_ns(), 0, None
    try:
        async with aclosing(cast("Any", chunks)) as incoming:
            async for chunk in incoming:
                size += len(chunk)
                yield chunk
    except Exception as failure:
        error = spans.error_type(failure)
        raise
    finally:
        attributes: dict[str, str | int] = {"waybill.storage.key": key, "waybill.storage.bytes": size}
        spans.past_span(
            "storage get", begun=begun, ended=time.time_ns(), kind="client", attributes=attributes, error=error
        )
