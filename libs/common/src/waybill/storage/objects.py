"""A storage in an object store (S3 and compatible ones, Google Cloud Storage, Azure), with obstore.

obstore retries failed requests with backoff, except a delete that timed out. It resumes an interrupted download, as
long as the object is the same. Other errors are raised as IoFailure, and the job is retried later.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import aclosing

import obstore
from obstore.store import ObjectStore

from waybill.errors import IoFailure, NotFound
from waybill.storage.failures import FAULTS, beyond_the_end, failure, no_bucket
from waybill.storage.interface import CHUNK, Listed, Stored
from waybill.storage.keys import checked
from waybill.storage.multipart_upload import MultipartUpload
from waybill.storage.pieces import pieces

_PAGE = 1000
_AT_ONCE = 16


class ObjectStorage:
    def __init__(self, store: ObjectStore, name: str) -> None:
        self._store = store
        self._name = name

    def __repr__(self) -> str:
        return f"ObjectStorage({self._name!r})"  # the store's own repr may show its configuration

    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, limit: int | None = None) -> Stored:
        upload = MultipartUpload(self._store, checked(key))
        digest, size = hashlib.sha256(), 0
        try:
            async with aclosing(pieces(data, CHUNK, limit)) as incoming:
                async for piece in incoming:
                    await asyncio.to_thread(digest.update, piece)
                    size += len(piece)
                    await upload.write(piece)
            await upload.finish()
        except BaseException:
            await asyncio.shield(upload.abort())
            raise
        return Stored(key, size, digest.hexdigest())

    async def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        if end is not None and end <= start:
            await self.size(key)  # raises NotFound if it does not exist
            return
        options: obstore.GetOptions = {}
        if end is not None:
            options["range"] = (start, end)
        elif start:
            options["range"] = {"offset": start}
        try:
            found = await obstore.get_async(self._store, checked(key), options=options)
        except FAULTS as error:
            if beyond_the_end(error):
                return
            raise _missing_or_failed(error, key) from None
        chunks = found.stream(min_chunk_size=CHUNK)
        while True:
            try:
                chunk = await anext(chunks, None)
            except FAULTS as error:
                raise failure(error) from None
            if chunk is None:
                return
            yield bytes(chunk)

    async def get(self, key: str) -> bytes:
        try:
            found = await obstore.get_async(self._store, checked(key))
            return bytes(await found.bytes_async())
        except FAULTS as error:
            raise _missing_or_failed(error, key) from None

    async def size(self, key: str) -> int:
        try:
            return (await obstore.head_async(self._store, checked(key)))["size"]
        except FAULTS as error:
            raise _missing_or_failed(error, key) from None

    async def exists(self, key: str) -> bool:
        try:
            await self.size(key)
        except NotFound:
            return False
        return True

    async def delete(self, key: str) -> None:
        try:
            await obstore.delete_async(self._store, checked(key))
        except FileNotFoundError as error:
            if no_bucket(error):
                raise failure(error) from None
        except FAULTS as error:
            raise failure(error) from None

    async def delete_many(self, keys: Sequence[str]) -> None:
        waiting = iter(keys)

        async def some() -> None:
            for key in waiting:
                await self.delete(key)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_AT_ONCE, len(keys))):
                    group.create_task(some())
        except* IoFailure as failures:
            raise failures.exceptions[0] from None

    async def list(self, prefix: str = "") -> AsyncIterator[Listed]:
        below = checked(prefix.removesuffix("/")) if prefix else None
        found = obstore.list(self._store, below, chunk_size=_PAGE)
        while True:
            try:
                page = await anext(found, None)
            except FAULTS as error:
                raise failure(error) from None
            if page is None:
                return
            for one in page:
                yield Listed(one["path"], one["size"], one["last_modified"])

    async def remove_abandoned(self, *, older_than: float | None = None, dry_run: bool = False) -> int:
        del older_than, dry_run
        return 0

    async def free_space(self) -> int | None:
        return None

    async def check(self) -> None:
        # A response to GET tells whether only the object or the whole bucket is missing; one to HEAD does not.
        try:
            await obstore.get_async(self._store, "waybill-check")
        except FileNotFoundError as error:
            if no_bucket(error):
                raise failure(error) from None
        except FAULTS as error:
            raise failure(error) from None


def _missing_or_failed(error: BaseException, key: str) -> Exception:
    if isinstance(error, FileNotFoundError) and not no_bucket(error):
        return NotFound(f"Nothing is stored under {key!r}.")
    return failure(error)
