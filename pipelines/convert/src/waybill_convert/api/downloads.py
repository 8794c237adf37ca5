"""Downloads: one result as it is, or many as a ZIP. Both are streamed from storage."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from waybill.errors import Expired, IoFailure, NotFound, Refused
from waybill.files import safe_name
from waybill.ids import made_at
from waybill.messages import msg
from waybill.storage import Storage
from waybill.web.archive import ArchiveEntry, zipped
from waybill.web.content_disposition import disposition
from waybill.web.entity_tags import is_known
from waybill.web.methods import headers_only, is_head
from waybill.web.openapi import refusals
from waybill_convert.api.readable import ReadableOwner
from waybill_convert.download_service import StoredFile
from waybill_convert.permissions import Reader
from waybill_convert.upload_contents import suffix_of
from waybill_convert.web_context import ConvertContext, Shared

router = APIRouter(prefix="/api/jobs", tags=["results"])

MOST_IDS = 200
_NOTED_TOGETHER = 500
_MISSING = "NOT IN THIS ARCHIVE.txt"
_MISSING_TEXT = (
    "These results were ready but could not be read when this archive was made. They may have been removed meanwhile;"
    " otherwise please download them again.\r\n\r\n{}\r\n"
)
_LONGEST_IDS = MOST_IDS * 37


# This route comes before those with an id: "download" is not an id.
@router.get(
    "/download",
    response_class=StreamingResponse,
    responses={
        200: {"description": "A ZIP archive.", "content": {"application/zip": {}}},
        **refusals(403, 404, 409),
    },
)
async def download_many(
    request: Request,
    context: Shared,
    visitor: Reader,
    ids: Annotated[
        str | None,
        Query(
            max_length=_LONGEST_IDS,
            description=f"Job ids, separated by commas; at most {MOST_IDS}. Without them, everything that is ready.",
        ),
    ] = None,
) -> Response:
    """Download several results as one ZIP. A text file in it names results that were removed meanwhile."""
    owner = visitor.principal.owner
    if ids is None:
        results = context.downloads.every_result(owner)
    else:
        results = _each(await context.downloads.results(owner, _parse(ids)))
    entries = _entries(context, results)
    # Open the first result before the response begins: most errors can then still be answered.
    first = await anext(entries, None)
    if first is None:
        raise Expired()
    headers = {"Content-Disposition": disposition("waybill-results.zip"), "Cache-Control": "private, no-store"}
    if is_head(request):
        await entries.aclose()
        return headers_only(headers, "application/zip")

    async def all_of_them() -> AsyncIterator[ArchiveEntry]:
        yield first
        async for entry in entries:
            yield entry

    return StreamingResponse(zipped(all_of_them()), media_type="application/zip", headers=headers)


async def _each(results: list[StoredFile]) -> AsyncIterator[StoredFile]:
    for result in results:
        yield result


async def _entries(context: ConvertContext, results: AsyncIterator[StoredFile]) -> AsyncGenerator[ArchiveEntry]:
    """Every result that can be opened, and a text file about those that cannot."""
    missing: list[str] = []
    found: list[uuid.UUID] = []
    async for result in results:
        name = result_name(result)
        try:
            data = await _opened(context.storage, result)
        except (Expired, IoFailure):
            missing.append(name)
            continue
        yield ArchiveEntry(name, made_at(result.job_id), data)
        found.append(result.job_id)
        if len(found) == _NOTED_TOGETHER:
            await context.downloads.note_downloaded(found)
            found = []
    if found:
        await context.downloads.note_downloaded(found)
        if missing:
            yield ArchiveEntry(_MISSING, datetime.now(UTC), _text(_MISSING_TEXT.format("\r\n".join(missing))))


async def _text(text: str) -> AsyncIterator[bytes]:
    yield text.encode("utf-8-sig")  # every editor can read this


@router.get(
    "/{job_id}/download",
    response_class=StreamingResponse,
    responses={
        200: {"description": "The XML.", "content": {"application/xml": {}}},
        304: {"description": "You have the current version."},
        **refusals(403, 404, 409),
    },
)
async def download(
    request: Request, job_id: uuid.UUID, context: Shared, visitor: Reader, owner: ReadableOwner
) -> Response:
    """Download a result. 409 if it is not ready, 404 `EXPIRED` if it was removed, 403 if it is not yours."""
    result = await context.downloads.result(owner, job_id)
    response = await send_file(request, context.storage, result, result_name(result))
    # Some tenants' results go once they were downloaded. Neither a HEAD nor an admin's look is a download.
    if response.status_code == 200 and not is_head(request) and owner == visitor.principal.owner:
        await context.downloads.note_downloaded([job_id])
    return response


@router.get(
    "/{job_id}/provenance",
    response_class=StreamingResponse,
    responses={
        200: {"description": "JSON: page, box and rule of each value.", "content": {"application/json": {}}},
        304: {"description": "You have the current version."},
        **refusals(404, 409),
    },
)
async def provenance(request: Request, job_id: uuid.UUID, context: Shared, owner: ReadableOwner) -> Response:
    """Where each value of a result comes from."""
    result = await context.downloads.provenance(owner, job_id)
    return await send_file(request, context.storage, result, None)


async def send_file(request: Request, storage: Storage, result: StoredFile, name: str | None) -> Response:
    """Send a stored file. With a name, browsers save it under that name."""
    headers = {"ETag": f'"{result.sha256}"', "Cache-Control": "private, no-cache", "Vary": "Cookie, Authorization"}
    if is_known(headers["ETag"], request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    headers["Content-Length"] = str(result.bytes)
    if name is not None:
        headers["Content-Disposition"] = disposition(name)
    if is_head(request):
        if not await storage.exists(result.storage_key):
            raise Expired()
        return headers_only(headers, result.media_type)
    return StreamingResponse(await _opened(storage, result), media_type=result.media_type, headers=headers)


async def _opened(storage: Storage, result: StoredFile) -> AsyncIterator[bytes]:
    """Open a file and read its first chunk, so that a missing file is an error and not a broken download."""
    stream = storage.stream(result.storage_key)
    try:
        first = await anext(stream, b"")
    except NotFound:
        raise Expired() from None

    async def whole() -> AsyncIterator[bytes]:
        yield first
        async for chunk in stream:
            yield chunk

    return whole()


def _parse(ids: str) -> list[uuid.UUID]:
    texts = [text.strip() for text in ids.split(",") if text.strip()]
    if not 1 <= len(texts) <= MOST_IDS:
        raise Refused(msg("convert.list.download_ids", number=MOST_IDS))
    try:
        return [uuid.UUID(text) for text in texts]
    except ValueError:
        raise Refused(msg("convert.list.download_id")) from None


def result_name(result: StoredFile) -> str:
    """`<original>-<job id>.xml`: readable for people, and unique."""
    original = safe_name(result.original_name)
    stem = original[: len(original) - len(suffix_of(original))]
    return f"{stem.rstrip(' .') or 'document'}-{result.job_id}.xml"
