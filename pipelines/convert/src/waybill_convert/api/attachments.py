"""`/api/jobs/{id}/attachments`: the files that are embedded in a document.

They come from strangers and may be anything. So they are taken out by the gateway when somebody asks, are never
stored, and are sent as plain bytes to be saved: a browser neither shows nor guesses what they are.
"""

from __future__ import annotations

import uuid
from typing import Annotated

import pydantic_core
from fastapi import APIRouter, Depends, Path, Request, Response

from waybill.files import safe_name
from waybill.web.content_disposition import disposition
from waybill.web.departures import while_connected
from waybill.web.methods import headers_only, is_head
from waybill.web.openapi import refusals
from waybill.web.visitors import heavy
from waybill_convert.api.readable import ReadableOwner
from waybill_convert.revision_schemas import AttachmentsSchema, attachments_json
from waybill_convert.web_context import Shared

router = APIRouter(prefix="/api/jobs/{job_id}/attachments", tags=["jobs"])

_BYTES = "application/octet-stream"


@router.get("", dependencies=[Depends(heavy)], response_model=AttachmentsSchema, responses=refusals(404, 409, 429, 503))
async def list_attachments(request: Request, job_id: uuid.UUID, context: Shared, owner: ReadableOwner) -> Response:
    """List the files that are embedded in the document, with the names and types that it claims."""
    found = await while_connected(request, context.reviews.attachments(owner, job_id))
    return Response(pydantic_core.to_json(attachments_json(job_id, found)), media_type="application/json")


@router.get(
    "/{number}",
    dependencies=[Depends(heavy)],
    response_class=Response,
    responses={
        200: {"description": "The file, to be saved.", "content": {_BYTES: {}}},
        **refusals(404, 409, 413, 422, 429, 502, 503, 504),
    },
)
async def download_attachment(
    request: Request,
    job_id: uuid.UUID,
    number: Annotated[int, Path(ge=1, le=100_000)],
    context: Shared,
    owner: ReadableOwner,
) -> Response:
    """Download one of them."""
    listed = await while_connected(request, context.reviews.attachments(owner, job_id, number))
    headers = {
        "Content-Disposition": disposition(safe_name(str(listed[0]["name"]))),
        "Cache-Control": "private, no-store",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
    }
    if is_head(request):
        return headers_only(headers, _BYTES)
    content = await while_connected(request, context.reviews.attachment(owner, job_id, number))
    return Response(content, media_type=_BYTES, headers=headers)
