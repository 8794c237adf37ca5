"""`/api/batches/{id}/files`: the files of a batch, and their results."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import pydantic_core
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from waybill.errors import Expired, NotFound
from waybill.files import safe_name
from waybill.storage import Storage
from waybill.web.content_disposition import disposition
from waybill.web.entity_tags import is_known
from waybill.web.methods import headers_only, is_head
from waybill.web.openapi import refusals
from waybill_batches.download_service import StoredResult
from waybill_batches.permissions import Reader
from waybill_batches.schemas import FileSchema, FilesSchema, file_json, files_json
from waybill_batches.service import MOST_LISTED, check_words
from waybill_batches.status import FileStatus
from waybill_batches.web_context import Shared

router = APIRouter(prefix="/api/batches/{batch_id}/files", tags=["batches"])


@router.get("", response_model=FilesSchema, responses=refusals(404))
async def list_files(
    batch_id: uuid.UUID,
    context: Shared,
    visitor: Reader,
    status: Annotated[
        list[FileStatus] | None, Query(description="Only files with these states; may be repeated.")
    ] = None,
    type: Annotated[  # noqa: A002 - the API's word
        str | None, Query(max_length=30, description="Only files of this type, such as `pdf`.")
    ] = None,
    q: Annotated[str | None, Query(max_length=200, description="Part of the path.")] = None,
    order: Annotated[
        Literal["errors_first", "archive"],
        Query(description="What failed first, then what waits for a person; or as in the ZIP."),
    ] = "errors_first",
    cursor: Annotated[
        str | None, Query(max_length=200, description="The next page: the `next` of an earlier answer.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
) -> Response:
    """List the files of a batch."""
    check_words(q)
    check_words(type)
    listing = await context.batches.files(
        visitor.principal.owner,
        batch_id,
        statuses=status or (),
        kind=type,
        words=q,
        cursor=cursor,
        limit=limit,
        in_order=order == "archive",
    )
    return _json(files_json(listing))


@router.get("/{doc_id}", response_model=FileSchema, responses=refusals(404))
async def get_file(batch_id: uuid.UUID, doc_id: str, context: Shared, visitor: Reader) -> Response:
    """One file of a batch."""
    check_words(doc_id)
    return _json(file_json(await context.batches.file(visitor.principal.owner, batch_id, doc_id)))


@router.get(
    "/{doc_id}/result",
    response_class=StreamingResponse,
    responses={
        200: {"description": "The result.", "content": {"application/json": {}, "application/xml": {}}},
        304: {"description": "You have the current version."},
        **refusals(404, 409),
    },
)
async def result(
    request: Request,
    batch_id: uuid.UUID,
    doc_id: str,
    context: Shared,
    visitor: Reader,
    format: Annotated[  # noqa: A002 - the API's word
        Literal["json", "xml"], Query(description="`xml` for files that were converted by a mapping.")
    ] = "json",
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """What was read in a file. 409 if it is not ready or failed, 404 `EXPIRED` if it was removed."""
    check_words(doc_id)
    owner = visitor.principal.owner
    found = await context.downloads.result(owner, batch_id, doc_id, xml=format == "xml")
    headers = {"ETag": found.tag, "Cache-Control": "private, no-cache", "Vary": "Cookie, Authorization"}
    if is_known(found.tag, if_none_match):
        return Response(status_code=304, headers=headers)
    file = await context.batches.file(owner, batch_id, doc_id)
    headers["Content-Length"] = str(found.size)
    headers["Content-Disposition"] = disposition(f"{safe_name(file.path)}.{format}")
    if is_head(request):
        return headers_only(headers, found.media_type)
    return StreamingResponse(await opened(context.storage, found), media_type=found.media_type, headers=headers)


async def opened(storage: Storage, found: StoredResult) -> AsyncIterator[bytes]:
    """Read the first chunk, so that a missing result is an error and not a broken download."""
    stream = found.read(storage)
    try:
        first = await anext(stream, b"")
    except NotFound:
        raise Expired() from None

    async def whole() -> AsyncIterator[bytes]:
        yield first
        async for chunk in stream:
            yield chunk

    return whole()


def _json(content: dict[str, Any]) -> Response:
    return Response(pydantic_core.to_json(content), media_type="application/json")
