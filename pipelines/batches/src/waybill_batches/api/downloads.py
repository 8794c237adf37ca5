"""`GET /api/batches/{id}/download`: all results of a batch as one ZIP, streamed from storage."""

from __future__ import annotations

import csv
import io
import json
import uuid
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from waybill.errors import Expired, IoFailure, NotFound, UnsafePath
from waybill.files import safe_name
from waybill.files.names import parts_of
from waybill.ids import made_at
from waybill.web.archive import ArchiveEntry, zipped
from waybill.web.content_disposition import disposition
from waybill.web.methods import headers_only, is_head
from waybill.web.openapi import refusals
from waybill_batches.api.files import opened
from waybill_batches.download_service import stored_result
from waybill_batches.permissions import Reader
from waybill_batches.status import FileStatus
from waybill_batches.views import FileView
from waybill_batches.web_context import BatchContext, Shared

router = APIRouter(prefix="/api/batches", tags=["batches"])

_FAULTS = "ERRORS.csv"
_SUMMARY = "SUMMARY.json"
_ENDINGS = (".json", ".xml")


@router.get(
    "/{batch_id}/download",
    response_class=StreamingResponse,
    responses={
        200: {"description": "A ZIP archive.", "content": {"application/zip": {}}},
        **refusals(404, 409),
    },
)
async def download(request: Request, batch_id: uuid.UUID, context: Shared, visitor: Reader) -> Response:
    """Every result, in the folders of the uploaded ZIP; `SUMMARY.json`; and `ERRORS.csv` if files have none."""
    owner = visitor.principal.owner
    batch = await context.downloads.whole(owner, batch_id)
    headers = {
        "Content-Disposition": disposition(f"{safe_name(batch.name)}-results.zip"),
        "Cache-Control": "private, no-store",
    }
    if is_head(request):
        return headers_only(headers, "application/zip")
    entries = _entries(context, owner, batch_id)
    return StreamingResponse(zipped(entries), media_type="application/zip", headers=headers)


async def _entries(context: BatchContext, owner: str, batch_id: uuid.UUID) -> AsyncIterator[ArchiveEntry]:
    made = made_at(batch_id)
    summary = await context.batches.summary(owner, batch_id)
    if summary is not None:
        yield ArchiveEntry(_SUMMARY, made, _whole(json.dumps(summary, indent=2, ensure_ascii=False)))
    faults: list[tuple[str, str, str, str]] = []
    names = _Names()
    async for file in context.downloads.every_file(owner, batch_id):
        name = names.of(file)
        found, xml = stored_result(file), stored_result(file, xml=True)
        try:
            if found is None:
                faults.append(_fault(file))
            else:
                yield ArchiveEntry(f"{name}.json", made, await opened(context.storage, found))
            if xml is not None:
                yield ArchiveEntry(f"{name}.xml", made, await opened(context.storage, xml))
        except (Expired, IoFailure, NotFound) as error:
            faults.append((file.path, FileStatus.EXPIRED, error.code, error.message))
    if faults:
        yield ArchiveEntry(_FAULTS, made, _whole("\ufeff" + _table(faults)))


class _Names:
    """Names for the results: the files' own paths where those are safe to unpack, and no name twice."""

    def __init__(self) -> None:
        self._taken: set[str] = {_FAULTS.lower(), _SUMMARY.lower()}
        self._folders: set[str] = set()

    def of(self, file: FileView) -> str:
        try:
            name = "/".join(parts_of(f"{file.path}.json")).removesuffix(".json")
        except UnsafePath:
            name = safe_name(file.path)
        while not self._free(name):
            name = f"{safe_name(name)}-{file.doc_id[:8]}-{file.number}"
        for ending in _ENDINGS:
            whole = f"{name}{ending}".lower()
            self._taken.add(whole)
            self._folders.update(_folders(whole))
        return name

    def _free(self, name: str) -> bool:
        """Whether nothing has this name yet, as a file or as a folder, and no file the name of its folders."""
        wanted = {f"{name}{ending}".lower() for ending in _ENDINGS}
        return not (wanted & self._taken or wanted & self._folders or self._taken.intersection(_folders(name.lower())))


def _folders(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts))]


def _fault(file: FileView) -> tuple[str, str, str, str]:
    if file.error is None:
        return file.path, file.status, "", ""
    return file.path, file.status, file.error.error_type, file.error.message


def _table(faults: list[tuple[str, str, str, str]]) -> str:
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(("path", "status", "error_type", "message"))
    writer.writerows([_harmless(cell) for cell in row] for row in faults)
    return written.getvalue()


def _harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


async def _whole(text: str) -> AsyncIterator[bytes]:
    yield text.encode("utf-8", "replace")
