"""Answers to requests that FastAPI refuses because their parameters do not fit, and to clients that have left."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from waybill import http
from waybill.errors import Code
from waybill.messages import msg


def install(app: FastAPI) -> None:
    """Answer every exception with a problem document."""
    http.install(app)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ClientDisconnect, _gone)


async def _invalid(_request: Request, error: Exception) -> http.Problem:
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    where = "; ".join(f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in problems)
    return http.Problem(422, Code.VALIDATION_ERROR, msg("request.invalid", where=where) if where else None)


async def _gone(_request: Request, _error: Exception) -> Response:
    """Nobody hears this answer. The status is the one that nginx has for it."""
    return Response(status_code=499)
