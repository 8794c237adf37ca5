"""A storage whose operations are measured: how long they took, how they ended, and how many bytes went through."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, cast

from waybill.errors import IoFailure, NotFound
from waybill.storage.interface import Stored
from waybill.storage.storage_wrapper import StorageWrapper
from waybill.telemetry.metrics import STORAGE_BYTES, STORAGE_OPERATION


class MeasuredStorage(StorageWrapper):
    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, limit: int | None = None) -> Stored:
        with _measured("put"):
            stored = await self._storage.put(key, data, limit=limit)
        STORAGE_BYTES.labels("write").inc(stored.bytes)
        return stored

    async def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        with _measured("stream"):
            async with aclosing(cast("Any", self._storage.stream(key, start, end))) as chunks:
                async for chunk in chunks:
                    STORAGE_BYTES.labels("read").inc(len(chunk))
                    yield chunk

    async def get(self, key: str) -> bytes:
        with _measured("get"):
            found = await self._storage.get(key)
        STORAGE_BYTES.labels("read").inc(len(found))
        return found

    async def size(self, key: str) -> int:
        with _measured("size"):
            return await self._storage.size(key)

    async def exists(self, key: str) -> bool:
        with _measured("exists"):
            return await self._storage.exists(key)

    async def delete(self, key: str) -> None:
        with _measured("delete"):
            await self._storage.delete(key)

    async def delete_many(self, keys: Sequence[str]) -> None:
        with _measured("delete"):
            await self._storage.delete_many(keys)


@contextmanager
def _measured(operation: str) -> Iterator[None]:
    began, outcome = time.perf_counter(), "ok"
    try:
        yield
    except NotFound:
        outcome = "missing"
        raise
    except IoFailure:
        outcome = "failed"
        raise
    except BaseException:
        outcome = "aborted"  # a reader that stops early, a client that hangs up: no failure of the storage
        raise
    finally:
        STORAGE_OPERATION.labels(operation, outcome).observe(time.perf_counter() - began)
