"""What the OpenAPI document says beside what FastAPI finds out by itself: refusals, security, and examples."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from waybill.errors import Code
from waybill_convert.schemas import ProblemShape

_ABOUT: dict[int, tuple[Code, str]] = {
    400: (Code.VALIDATION_ERROR, "The request cannot be understood."),
    401: (Code.UNAUTHORIZED, "The API key is not one of ours, was revoked or has expired."),
    403: (Code.FORBIDDEN, "Not yours, not allowed with this key, or sent by a page of another site."),
    404: (Code.NOT_FOUND, "There is no such thing here; or it has `EXPIRED`."),
    408: (Code.VALIDATION_ERROR, "It took too long to arrive."),
    409: (Code.CONFLICT, "Not in this state; `NOT_READY` for a result that is not there yet."),
    413: (Code.TOO_LARGE, "Larger than it may be."),
    415: (Code.NOT_PDF, "Not a PDF."),
    422: (Code.VALIDATION_ERROR, "A parameter is not right."),
    429: (Code.RATE_LIMITED, "Too fast: wait for `Retry-After` seconds."),
    502: (Code.GW_5XX, "The gateway, which draws pages, had a problem or is busy: wait for `Retry-After` seconds."),
    503: (Code.DB_UNAVAILABLE, "The database cannot be reached."),
    504: (Code.GW_TIMEOUT, "The gateway took too long."),
    507: (Code.IO_ERROR, "There is no room left for documents."),
}
_EVERYWHERE = (400, 401, 403, 422, 503)

DESCRIPTION = """\
Hand in PDF invoices, follow them, fetch XML.

A browser is known by its session cookie and owns what it uploads. A program sends an API key:
`Authorization: Bearer wb_…` (`waybill apikey create`), and owns as its tenant does.

Errors are RFC 9457 problem documents with a `code`.
"""


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, beside those that every route has."""
    return {status: _refusal(status) for status in (*statuses, *_EVERYWHERE)}


def _refusal(status: int) -> dict[str, Any]:
    code, about = _ABOUT[status]
    example = {"type": "about:blank", "title": "…", "status": status, "detail": about, "code": code.value}
    refusal: dict[str, Any] = {
        "description": about,
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
        },
    }
    if status == 429:
        refusal["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return refusal


def install(app: FastAPI) -> None:
    """Complete the document when it is first asked for."""
    plain = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        document = plain()
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = ProblemShape.model_json_schema(ref_template="#/components/schemas/{model}")
        # What FastAPI would answer and we never do: our 422 is a problem document.
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        document["components"]["securitySchemes"] = {
            "key": {"type": "http", "scheme": "bearer", "description": "An API key: `wb_…`."},
            "session": {"type": "apiKey", "in": "cookie", "name": "waybill_session"},
        }
        document["security"] = [{"key": []}, {"session": []}, {}]
        return document

    app.openapi = complete  # type: ignore[method-assign]
