"""Problem documents for requests that FastAPI refuses because their parameters do not fit."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError

from waybill import http
from waybill.errors import Code
from waybill.messages import msg


def install(app: FastAPI) -> None:
    """Answer every exception with a problem document."""
    http.install(app)
    app.add_exception_handler(RequestValidationError, _invalid)


async def _invalid(_request: Request, error: Exception) -> http.Problem:
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    where = "; ".join(f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in problems)
    return http.Problem(422, Code.VALIDATION_ERROR, msg("request.invalid", where=where) if where else None)
