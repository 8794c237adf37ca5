"""`POST /api/upload` and `/api/uploads`: receive documents and create jobs for them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pydantic_core
from fastapi import APIRouter, Request, Response

from waybill import rate_limits
from waybill.errors import RateLimited, Refused
from waybill.http import Problem
from waybill.http.problems import message_of
from waybill.telemetry.metrics import RATE_LIMITED
from waybill.web.addresses import address_of
from waybill.web.openapi import refusals
from waybill.web.visitors import Visitor
from waybill_convert.kinds import DEFAULT_MAPPING
from waybill_convert.mapping_catalogue import MappingChoice
from waybill_convert.models import LOSSES
from waybill_convert.permissions import Writer
from waybill_convert.pinned_catalogues import AutoChoice
from waybill_convert.schemas import UploadedSchema, UploadsSchema, uploaded_json
from waybill_convert.upload_form import ReceivedDocument, UploadForm, UploadReceiver
from waybill_convert.views import Uploaded
from waybill_convert.web_context import ConvertContext, Shared
from waybill_documents.catalogue import AUTO
from waybill_engine import arrivals

router = APIRouter(prefix="/api", tags=["upload"])


async def admit(request: Request, context: ConvertContext, visitor: Visitor) -> datetime:
    """Count one upload request, and note when it began, which `create` wants to know.

    RateLimited if there were too many in the last minute; Conflict if the visitor is being erased.
    """
    settings, address = context.settings, address_of(request)
    limits: list[tuple[str, int]] = []
    if visitor.session is None or visitor.principal.signed_in:
        limits.append((f"upload:{visitor.principal.owner}", settings.api_key_uploads_per_minute))
    elif visitor.met_before:
        limits.append((f"upload:{visitor.principal.owner}", settings.api_uploads_per_minute))
    else:  # a browser without a cookie is counted by its address
        limits.append((f"upload:address:{address}", settings.api_uploads_per_minute))
    if not visitor.principal.signed_in and settings.api_address_uploads_per_minute:
        limits.append((f"upload:any:{address}", settings.api_address_uploads_per_minute))
    async with context.database.hot() as connection:
        for subject, limit in limits:
            wait = await rate_limits.take(connection, subject, limit=limit)
            if wait is not None:
                RATE_LIMITED.labels("uploads").inc()
                raise RateLimited(retry_after=wait)
        return await arrivals.begin(connection, visitor.principal.tenant, visitor.principal.owner)


async def check_space(request: Request, context: ConvertContext) -> None:
    """StorageFull, a 507, if there is no room for the request. Nothing is read before."""
    length = request.headers.get("content-length", "")
    await context.space.check(int(length) if length.isdigit() and len(length) < 16 else 0)


async def receiver_of(context: ConvertContext, visitor: Visitor, *, files: int) -> UploadReceiver:
    settings = context.settings
    return UploadReceiver(
        context.storage,
        with_auto(await choices_of(context, visitor)),
        default=settings.default_mapping,
        tenant=visitor.principal.tenant,
        file_mb=settings.max_upload_mb,
        request_mb=settings.max_upload_mb if files == 1 else settings.api_max_request_mb,
        most_files=files,
        seconds=settings.api_upload_timeout,
    )


async def choices_of(context: ConvertContext, visitor: Visitor) -> dict[str, MappingChoice]:
    """The mappings that a visitor can choose from."""
    async with context.database.hot() as connection:
        return await context.catalogue.choices(connection, visitor.principal.tenant)


def with_auto(choices: dict[str, MappingChoice]) -> dict[str, MappingChoice]:
    """The mappings that can be asked for: those, and the one of them that recognises the document."""
    return {AUTO: AutoChoice.among(choices.values()), **choices}


async def create(
    context: ConvertContext,
    visitor: Visitor,
    receiver: UploadReceiver,
    received: ReceivedDocument,
    form: UploadForm,
    begun_at: datetime,
) -> Uploaded:
    """Create a job for a received document."""
    # Keep the file before the job is committed: a job without its document is worse than a file without a job.
    receiver.keep(received.key)
    try:
        if isinstance(form.mapping, AutoChoice):
            async with context.database.hot() as connection:
                await form.mapping.pin(connection)
        return await context.uploads.upload(
            visitor.principal, received.upload(form.mapping, form.loss), force=form.force, begun_at=begun_at
        )
    except Refused:  # it is raised before anything is written
        receiver.drop(received.key)
        raise


_FILE = {
    "type": "string",
    "format": "binary",
    "description": "A PDF, an e-invoice as XML, or a workbook or CSV file for a mapping that reads those.",
}
_FIELDS = {
    "mapping": {"type": "string", "default": DEFAULT_MAPPING, "description": "One of `GET /api/mappings`, or `auto`."},
    "force": {
        "type": "boolean",
        "default": False,
        "description": "Convert the document even if it was converted before.",
    },
    "loss": {
        "type": "string",
        "enum": list(LOSSES),
        "description": "What becomes of details of an e-invoice that have no place in the result, if not as the mapping"
        " says: `strict` refuses the document, `lenient` drops them and lists each one.",
    },
}


def _body(file: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "required": ["file"], "properties": {"file": file, **_FIELDS}}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


@router.post(
    "/upload",
    status_code=201,
    response_model=UploadedSchema,
    responses={
        200: {"model": UploadedSchema, "description": "The same document was uploaded before; that job is reused."},
        **refusals(408, 409, 413, 415, 429, 507),
    },
    openapi_extra=_body(_FILE),
)
async def upload(request: Request, context: Shared, visitor: Writer) -> Response:
    """Upload one PDF, one e-invoice as XML, or one workbook or CSV file.

    201 with a new job; 200 if the same document was uploaded before and its job is reused.
    """
    begun_at = await admit(request, context, visitor)
    await check_space(request, context)
    async with await receiver_of(context, visitor, files=1) as receiver:
        form = await receiver.receive(request, one=True)
        uploaded = await create(context, visitor, receiver, form.files[0], form, begun_at)
    new = uploaded.deduped_from is None
    headers = {"Location": f"/api/jobs/{uploaded.job.id}"}
    response = _json(uploaded_json(uploaded), 201 if new else 200, headers)
    visitor.welcome(request, response)
    return response


@router.post(
    "/uploads",
    status_code=201,
    response_model=UploadsSchema,
    responses={
        200: {"model": UploadsSchema, "description": "All of them were uploaded before."},
        207: {"model": UploadsSchema, "description": "Some were refused; each file says how it went."},
        **refusals(408, 409, 413, 429, 507),
    },
    openapi_extra=_body({"type": "array", "items": _FILE, "minItems": 1}),
)
async def uploads(request: Request, context: Shared, visitor: Writer) -> Response:
    """Upload several documents at once. The answer has a result for each file."""
    begun_at = await admit(request, context, visitor)
    await check_space(request, context)
    async with await receiver_of(context, visitor, files=context.settings.api_max_files) as receiver:
        form = await receiver.receive(request, one=False)
        answers = [await _answer(context, visitor, receiver, received, form, begun_at) for received in form.files]
    statuses = {answer["status"] for answer in answers}
    status = 207 if statuses - {200, 201} else 201 if 201 in statuses else 200
    response = _json({"files": answers}, status)
    visitor.welcome(request, response)
    return response


async def _answer(
    context: ConvertContext,
    visitor: Visitor,
    receiver: UploadReceiver,
    received: ReceivedDocument,
    form: UploadForm,
    begun_at: datetime,
) -> dict[str, Any]:
    answer: dict[str, Any] = {"file": received.name, "status": 0, "job": None, "deduped_from": None, "problem": None}
    failure = received.failure
    if failure is None:
        uploaded = await create(context, visitor, receiver, received, form, begun_at)
        answer |= uploaded_json(uploaded) | {"status": 200 if uploaded.deduped_from else 201}
    else:
        problem = Problem.members(failure.status, failure.code, message_of(failure))
        answer |= {"status": failure.status, "problem": problem}
    return answer


def _json(content: dict[str, Any], status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(pydantic_core.to_json(content), status, headers, "application/json")
