"""Pictures of a document's pages. They are drawn on demand, stored beside the job, and removed with the document."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.errors import Expired, NotFound
from waybill.messages import msg
from waybill.telemetry import spans
from waybill_convert.kinds import CONVERT_PDF
from waybill_convert.stored_files import pages_of, remove

if TYPE_CHECKING:
    from waybill.storage import Storage
    from waybill_convert.revision_models import Renderer

_AT_ONCE = 2
"""Pages that one process has drawn at a time, so that a reader of a long document leaves room for conversions."""


@dataclass(frozen=True, slots=True)
class Document:
    """A stored PDF, and a way to ask whether its owner may still see it."""

    job_id: uuid.UUID
    tenant: str
    upload_key: str
    bytes: int
    kept: Callable[[], Awaitable[bool]]
    pages: int | None = None
    """None if nobody has counted them: the conversion failed."""


class PageImages:
    def __init__(self, storage: Storage, renderer: Renderer) -> None:
        self._storage = storage
        self._renderer = renderer
        self._drawing: dict[str, asyncio.Task[bytes]] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def known(self, document: Document, page: int, scale: int) -> bool:
        """Whether the page exists, as far as we know without drawing it. NotFound if it does not."""
        if document.pages:
            if page > document.pages:
                raise NotFound(msg("convert.gateway.no_page"))
            return True
        return await self._storage.exists(_key(document, page, scale))

    async def get(self, document: Document, page: int, scale: int) -> bytes:
        """The page as PNG. Concurrent requests for a page share one drawing."""
        with spans.about_job(job_id=document.job_id, tenant=document.tenant, kind=CONVERT_PDF.name):
            return await self._get(document, page, scale)

    async def attachment(self, document: Document, number: int) -> bytes:
        """A file that is embedded in the document. It is not kept: whoever asks again is rare."""
        with spans.about_job(job_id=document.job_id, tenant=document.tenant, kind=CONVERT_PDF.name):
            async with self._places:
                if not await self._storage.exists(document.upload_key):
                    raise Expired(msg("convert.document_gone"))
                return await self._renderer.attachment(
                    document.upload_key, document.bytes, number=number, job_id=document.job_id
                )

    async def _get(self, document: Document, page: int, scale: int) -> bytes:
        key = _key(document, page, scale)
        try:
            return await self._storage.get(key)
        except NotFound:
            pass
        drawing = self._drawing.get(key)
        if drawing is None:
            drawing = self._drawing[key] = asyncio.create_task(self._draw(key, document, page, scale))
            drawing.add_done_callback(lambda done: self._drawn(key, done))
        return await asyncio.shield(drawing)  # a client that hangs up must not cancel it for the others

    async def close(self) -> None:
        tasks = list(self._drawing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _draw(self, key: str, document: Document, page: int, scale: int) -> bytes:
        async with self._places:
            if not await self._storage.exists(document.upload_key):
                raise Expired(msg("convert.document_gone"))
            image = await self._renderer.render(
                document.upload_key, document.bytes, page=page, scale=scale, job_id=document.job_id
            )
        await self._storage.put(key, image)
        # Checked last: if the document was deleted meanwhile, that did not find this picture.
        if not await document.kept():
            await remove(self._storage, [key])
            raise Expired(msg("convert.document_gone"))
        return image

    def _drawn(self, key: str, done: asyncio.Task[bytes]) -> None:
        del self._drawing[key]
        if not done.cancelled():
            done.exception()  # marks it as seen, even if nobody waits for it any more


def _key(document: Document, page: int, scale: int) -> str:
    return f"{pages_of(document.job_id)}/{page}-{scale}.png"
