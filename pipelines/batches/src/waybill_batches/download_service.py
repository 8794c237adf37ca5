"""Results leave: one file's, or everything that a batch has."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.errors import Expired, NotReady
from waybill.messages import msg
from waybill_batches.service import Batches
from waybill_batches.status import BatchStatus, FileStatus
from waybill_batches.views import BatchView, FileView

if TYPE_CHECKING:
    from waybill.storage import Storage

JSON = "application/json"
XML = "application/xml"
_PAGE = 500

_WHY_NOT_READY = {
    FileStatus.FAILED: msg("batches.result_failed"),
    FileStatus.CANCELLED: msg("batches.result_cancelled"),
    FileStatus.NEEDS_REVIEW: msg("batches.result_in_doubt"),
}
"""For the other states, the code says it: it is not ready yet."""


@dataclass(frozen=True, slots=True)
class StoredResult:
    """Where a result lies: an object, or a range of one."""

    key: str
    start: int
    size: int
    media_type: str

    @property
    def tag(self) -> str:
        """Different for every result: an object is never written twice."""
        return f'"{uuid.uuid5(uuid.NAMESPACE_OID, f"{self.key} {self.start}").hex}"'

    def read(self, storage: Storage) -> AsyncIterator[bytes]:
        return storage.stream(self.key, self.start, self.start + self.size)


class BatchDownloads:
    """The service; one per process."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    async def result(self, owner: str, batch_id: uuid.UUID, doc_id: str, *, xml: bool = False) -> StoredResult:
        """The result of one file. NotReady or Expired say why there is none."""
        file = await self._batches.file(owner, batch_id, doc_id)
        if file.status is FileStatus.EXPIRED:
            raise Expired(msg("batches.result_gone"))
        found = stored_result(file, xml=xml)
        if file.status is FileStatus.COMPLETE and xml and found is None:
            raise NotReady(msg("batches.no_xml"))
        if found is None:
            detail = {"review": file.review} if file.status is FileStatus.NEEDS_REVIEW else None
            raise NotReady(_WHY_NOT_READY.get(file.status), detail=detail)
        return found

    async def whole(self, owner: str, batch_id: uuid.UUID) -> BatchView:
        """The batch, if there is something of it to download."""
        batch = await self._batches.get(owner, batch_id)
        if batch.status is BatchStatus.EXPIRED:
            raise Expired(msg("batches.expired"))
        if not batch.downloadable:
            raise NotReady(msg("batches.nothing_ready"))
        return batch

    async def every_file(self, owner: str, batch_id: uuid.UUID) -> AsyncIterator[FileView]:
        """The files in the order of the ZIP. No connection is kept meanwhile: clients may download slowly."""
        cursor: str | None = None
        while True:
            page = await self._batches.files(owner, batch_id, cursor=cursor, limit=_PAGE, in_order=True)
            for file in page.files:
                yield file
            if (cursor := page.next) is None:
                return


def stored_result(file: FileView, *, xml: bool = False) -> StoredResult | None:
    """What a complete file has; None for all others."""
    if file.status is not FileStatus.COMPLETE:
        return None
    if xml:
        return StoredResult(file.xml_key, 0, file.xml_bytes, XML) if file.xml_key and file.xml_bytes else None
    if file.result_key is None or file.result_bytes is None:
        return None
    return StoredResult(file.result_key, file.result_at or 0, file.result_bytes, JSON)
