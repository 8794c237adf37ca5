"""`/api/jobs/{id}/revisions` and `/pages`: review what was read from a document, approve it, and correct it."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import pydantic_core
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from waybill.errors import Code, Refused
from waybill.http import Problem
from waybill.http.problems import message_of
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.security import Principal, keys
from waybill.web.departures import while_connected
from waybill.web.entity_tags import is_known
from waybill.web.methods import headers_only, is_head
from waybill.web.openapi import refusals
from waybill.web.visitors import heavy
from waybill_convert.api.downloads import result_name, send_file
from waybill_convert.api.readable import ReadableOwner
from waybill_convert.kinds import PROVENANCE, XML
from waybill_convert.permissions import Editor
from waybill_convert.revision_models import Outdated, Typed, Unfit
from waybill_convert.revision_schemas import (
    LARGEST_NUMBER,
    ApprovalSchema,
    CorrectionsSchema,
    DiffSchema,
    PreviewSchema,
    RevisionSchema,
    RevisionsSchema,
    diff_json,
    preview_json,
    revision_json,
    revisions_json,
)
from waybill_convert.schemas import JobSchema, job_json
from waybill_convert.web_context import ConvertContext, Shared

router = APIRouter(prefix="/api/jobs/{job_id}", tags=["revisions"])

Number = Annotated[int, Path(ge=0, le=LARGEST_NUMBER, description="0 is what was read.")]


@router.get("/revisions", response_model=RevisionsSchema, responses=refusals(404, 409))
async def list_revisions(job_id: uuid.UUID, context: Shared, owner: ReadableOwner) -> Response:
    """List the revisions: who changed what, and when."""
    latest, revisions = await context.reviews.revisions(owner, job_id)
    return _json(revisions_json(job_id, latest, revisions))


@router.post(
    "/revisions",
    dependencies=[Depends(heavy)],
    status_code=201,
    response_model=RevisionSchema,
    responses={
        200: {"model": PreviewSchema, "description": "With `preview`: what would change."},
        **refusals(404, 409, 413, 507),
    },
)
async def correct(
    request: Request, job_id: uuid.UUID, wanted: CorrectionsSchema, context: Shared, visitor: Editor
) -> Response:
    """Correct the latest revision. 409 if `base` is not the latest any more, 422 if something is still wrong.

    The request may have 2 MB.
    """
    owner, typed = visitor.principal.owner, _typed(wanted)
    try:
        if wanted.preview:
            preview = await while_connected(request, context.reviews.preview(owner, job_id, wanted.base, typed))
            return _json(preview_json(wanted.base, preview))
        await context.space.check()
        author = await author_of(context, visitor.principal)
        saved = await context.reviews.save(owner, job_id, wanted.base, typed, author=author, accept=wanted.accept)
    except Outdated as outdated:
        return _conflict(job_id, outdated)
    except Unfit as unfit:
        more = {"findings": unfit.findings, "refused": unfit.refused}
        return Problem(422, Code.VALIDATION_ERROR, message_of(unfit), more=more)
    shown = revision_json(job_id, saved)
    return _json(shown, 201, {"Location": shown["links"]["self"]})


@router.post("/approve", response_model=JobSchema, responses=refusals(404, 408, 409, 413))
async def approve(job_id: uuid.UUID, wanted: ApprovalSchema, context: Shared, visitor: Editor) -> Response:
    """Say that a result is right although values in it are in doubt, so that it can be downloaded.

    409 `CONFLICT` if `base` is not the latest revision any more. A result that is complete already stays so.
    """
    owner = visitor.principal.owner
    author = await author_of(context, visitor.principal)
    try:
        await context.reviews.approve(owner, job_id, wanted.base, author=author)
    except Outdated as outdated:
        return _conflict(job_id, outdated)
    return _json(job_json(await context.conversions.get(owner, job_id)))


@router.get(
    "/revisions/{number}",
    response_class=StreamingResponse,
    responses={
        200: {"description": "JSON: data, provenance, checks, findings.", "content": {"application/json": {}}},
        304: {"description": "You have the current version."},
        **refusals(404, 409),
    },
)
async def get_record(
    request: Request, job_id: uuid.UUID, number: Number, context: Shared, owner: ReadableOwner
) -> Response:
    """Get the record of a revision: what was read, with all corrections up to this one."""
    found = await context.reviews.file(owner, job_id, number, PROVENANCE)
    return await send_file(request, context.storage, found, None)


@router.get(
    "/revisions/{number}/download",
    response_class=StreamingResponse,
    responses={
        200: {"description": "The XML.", "content": {"application/xml": {}}},
        304: {"description": "You have the current version."},
        **refusals(404, 409),
    },
)
async def download_revision(
    request: Request, job_id: uuid.UUID, number: Number, context: Shared, owner: ReadableOwner
) -> Response:
    """Download the XML of one revision."""
    found = await context.reviews.file(owner, job_id, number, XML)
    name = f"{result_name(found).removesuffix('.xml')}-r{number}.xml"
    return await send_file(request, context.storage, found, name)


@router.get(
    "/revisions/{before}/diff/{after}",
    dependencies=[Depends(heavy)],
    response_model=DiffSchema,
    responses=refusals(404, 409, 429, 503),
)
async def diff(
    request: Request, job_id: uuid.UUID, before: Number, after: Number, context: Shared, owner: ReadableOwner
) -> Response:
    """Compare two revisions value by value, computed ones included."""
    found = await while_connected(request, context.reviews.diff(owner, job_id, before, after))
    return _json(diff_json(before, after, found))


@router.get(
    "/pages/{number}",
    dependencies=[Depends(heavy)],
    response_class=Response,
    responses={
        200: {"description": "A picture of the page, as it was read.", "content": {"image/png": {}}},
        304: {"description": "You have the current version."},
        **refusals(404, 409, 413, 502, 504, 507),
    },
)
async def page(
    request: Request,
    job_id: uuid.UUID,
    number: Annotated[int, Path(ge=1, le=100_000)],
    context: Shared,
    owner: ReadableOwner,
    scale: Annotated[int, Query(ge=1, le=3, description="Pixels per point, of which an inch has 72.")] = 2,
) -> Response:
    """Get a picture of a page, rotated as it was read, so that the boxes of its values fit."""
    document = await context.reviews.document(owner, job_id)
    # A page's picture never changes. Browsers must ask each time, because it is removed with the document.
    tag = f'"{number}-{scale}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Cookie, Authorization"}
    if await context.reviews.has_page(document, number, scale):
        if is_known(tag, request.headers.get("if-none-match")):
            return Response(status_code=304, headers=headers)
        if is_head(request):
            return headers_only(headers, "image/png")  # its length is known once it is drawn
    image = await context.reviews.page(document, number, scale)
    return Response(image, media_type="image/png", headers=headers)


def _conflict(job_id: uuid.UUID, outdated: Outdated) -> Response:
    more: dict[str, Any] = {"latest": revision_json(job_id, outdated.latest), "paths": outdated.paths}
    return Problem(409, Code.CONFLICT, message_of(outdated), more=more)


def _typed(wanted: CorrectionsSchema) -> list[Typed]:
    typed = [(change.path, change.value or "") for change in wanted.changes]
    if not all(is_storable(path) and is_storable(text) for path, text in typed):
        raise Refused(msg("convert.review.bad_characters"))
    return typed


async def author_of(context: ConvertContext, principal: Principal) -> str:
    if principal.key_id is None:
        return "session"
    async with context.database.hot() as connection:
        return f"key:{(await keys.find(connection, principal.key_id)).name}"


def _json(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(pydantic_core.to_json(content), status, headers, "application/json")
