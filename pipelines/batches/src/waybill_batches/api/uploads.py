"""`POST /api/batches`: a ZIP comes in."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import pydantic_core
from fastapi import APIRouter, Header, Request, Response

from waybill import rate_limits
from waybill.errors import RateLimited, Refused
from waybill.telemetry.metrics import RATE_LIMITED
from waybill.web.addresses import address_of
from waybill.web.openapi import refusals
from waybill.web.visitors import Visitor
from waybill_batches.permissions import Writer
from waybill_batches.schemas import ReceivedSchema, batch_json
from waybill_batches.upload_form import BatchForm, ZipReceiver
from waybill_batches.upload_service import Received, check_mappings
from waybill_batches.web_context import BatchContext, Shared
from waybill_engine import arrivals

router = APIRouter(prefix="/api/batches", tags=["batches"])

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": "A ZIP of documents."},
                        "name": {"type": "string", "description": "What to call the batch; else its file's name."},
                        "rules": {
                            "type": "string",
                            "description": "Which files are converted by which mapping: a JSON list of"
                            ' `{"pattern": "invoices/*.pdf", "mapping": "NAME"}`. The first that matches decides.',
                        },
                        "schema": {
                            "type": "string",
                            "description": "A JSON Schema of fields that a language model fills in each file.",
                        },
                        "force": {
                            "type": "boolean",
                            "default": False,
                            "description": "Make a new batch even if the same ZIP is there already.",
                        },
                    },
                }
            }
        },
    }
}


async def admit(request: Request, context: BatchContext, visitor: Visitor) -> datetime:
    """Count one upload and note when it began. RateLimited, Conflict during an erasure, or a 507 without room."""
    length = request.headers.get("content-length", "")
    await context.space.check(int(length) if length.isdigit() and len(length) < 16 else 0)
    known = visitor.met_before or visitor.principal.signed_in
    subject = f"batch:{visitor.principal.owner}" if known else f"batch:address:{address_of(request)}"
    async with context.database.hot() as connection:
        wait = await rate_limits.take(connection, subject, limit=context.settings.batch_uploads_per_minute)
        if wait is not None:
            RATE_LIMITED.labels("batches").inc()
            raise RateLimited(retry_after=wait)
        return await arrivals.begin(connection, visitor.principal.tenant, visitor.principal.owner)


async def receive(
    request: Request, context: BatchContext, visitor: Visitor, key: str | None = None
) -> tuple[Received, BatchForm]:
    """Receive the form and make a batch of it."""
    begun_at = await admit(request, context, visitor)
    async with ZipReceiver(context.storage, context.settings, visitor.principal.tenant) as receiver:
        form = await receiver.receive(request)
        async with context.database.hot() as connection:
            await check_mappings(connection, visitor.principal.tenant, form)
        # Keep the ZIP before the batch is committed: a batch without it is worse than a ZIP without a batch.
        receiver.keep(form.zip.key)
        try:
            received = await context.uploads.receive(visitor.principal, form, key, begun_at)
        except Refused:  # it is raised before anything is committed
            receiver.drop(form.zip.key)
            raise
    return received, form


@router.post(
    "",
    status_code=202,
    response_model=ReceivedSchema,
    responses={
        200: {"model": ReceivedSchema, "description": "The same request was made before; that batch is returned."},
        **refusals(408, 409, 413, 415, 429, 507),
    },
    openapi_extra=_BODY,
)
async def upload(
    request: Request,
    context: Shared,
    visitor: Writer,
    idempotency_key: Annotated[
        str | None, Header(max_length=255, description="The same request with the same key makes one batch only.")
    ] = None,
) -> Response:
    """Upload a ZIP of PDF, Word, Excel, XML and text files. Each becomes JSON, and all of them one summary.

    202 with a new batch; 200 if the same ZIP is there already. One that failed, was cancelled or has expired starts
    anew, and `force` always does.
    """
    received, _ = await receive(request, context, visitor, idempotency_key)
    batch = await context.batches.get(visitor.principal.owner, received.batch_id)
    content = {"batch": batch_json(batch), "deduped_from": None if received.new else received.batch_id}
    headers = {"Location": f"/api/batches/{received.batch_id}"}
    response = Response(
        pydantic_core.to_json(content), 202 if received.new else 200, headers, media_type="application/json"
    )
    visitor.welcome(request, response)
    return response
