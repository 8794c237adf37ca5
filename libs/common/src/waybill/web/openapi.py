"""The OpenAPI document, and what we add to FastAPI's: refusals, security and examples."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse

from waybill.errors import Code
from waybill.http import Problem
from waybill.web.schemas import ProblemSchema

router = APIRouter(include_in_schema=False)

_ABOUT: dict[int, tuple[Code, str]] = {
    400: (Code.VALIDATION_ERROR, "The request cannot be understood."),
    401: (Code.UNAUTHORIZED, "The API key is unknown, was revoked or has expired."),
    403: (Code.FORBIDDEN, "It is not yours, this key may not do it, or a page of another site sent the request."),
    404: (Code.NOT_FOUND, "It does not exist, or it has `EXPIRED`."),
    408: (Code.VALIDATION_ERROR, "The request arrived too slowly."),
    409: (Code.CONFLICT, "It is not possible in this state; `NOT_READY` for a result that does not exist yet."),
    413: (Code.TOO_LARGE, "The request is too large."),
    415: (Code.NOT_PDF, "The file is not a PDF."),
    422: (Code.VALIDATION_ERROR, "A parameter is not right."),
    429: (Code.RATE_LIMITED, "There were too many requests: wait for `Retry-After` seconds."),
    431: (Code.VALIDATION_ERROR, "The request line and the headers are too long."),
    502: (Code.GW_5XX, "The gateway, which draws pages, had a problem or is busy: wait for `Retry-After` seconds."),
    503: (Code.DB_UNAVAILABLE, "The database cannot be reached, or too much is asked for at the moment."),
    504: (Code.GW_TIMEOUT, "The gateway took too long."),
    507: (Code.IO_ERROR, "There is no room left for documents."),
}
_EVERYWHERE = (400, 401, 403, 422, 429, 431, 503)

DESCRIPTION = """\
Upload PDF invoices, follow their conversion, download XML.

A browser is known by its session cookie and owns what it uploads. A program sends an API key,
`Authorization: Bearer wb_…` (`waybill apikey create`), and shares everything with its tenant.

Errors are RFC 9457 problem documents with a `code` for programs and an English `detail` for people. `key` and `params`
say the same in a form that can be translated.
"""


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, in addition to those that every route has."""
    return {status: _refusal(status) for status in (*statuses, *_EVERYWHERE)}


def _refusal(status: int) -> dict[str, Any]:
    code, about = _ABOUT[status]
    example = {**Problem.members(status, code), "title": "…"}
    refusal: dict[str, Any] = {
        "description": about,
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
        },
    }
    if status == 429:
        refusal["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return refusal


@router.get("/api/openapi.json")
async def document(request: Request) -> JSONResponse:
    """The document. This route is ours because FastAPI's own has no name in logs, metrics and the audit trail."""
    return JSONResponse(request.app.openapi())


def install(app: FastAPI) -> None:
    """Complete the document when it is first requested."""
    plain = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        made = plain()
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = ProblemSchema.model_json_schema(ref_template="#/components/schemas/{model}")
        # FastAPI's own answers to bad requests, which we never send: our 422 is a problem document.
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        made["components"]["securitySchemes"] = {
            "key": {"type": "http", "scheme": "bearer", "description": "An API key: `wb_…`."},
            "session": {"type": "apiKey", "in": "cookie", "name": "waybill_session"},
        }
        made["security"] = [{"key": []}, {"session": []}, {}]
        return made

    app.openapi = complete  # type: ignore[method-assign]
