"""Every error leaves as an RFC 9457 problem document: with its `code`, and with its message's `key` and `params`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as AsgiMessage

from waybill.errors import MEANINGS, Code, WaybillError
from waybill.failures import Failure, classify
from waybill.http.request_place import job_of, route_of
from waybill.messages import Message, msg
from waybill.pg_text import storable_json

log = structlog.get_logger()

_CODES = {404: Code.NOT_FOUND, 403: Code.FORBIDDEN, 413: Code.TOO_LARGE, 429: Code.RATE_LIMITED}


class Problem(JSONResponse):
    """A problem document. `detail` is for the person who asked; it reveals nothing about our machines."""

    media_type = "application/problem+json"

    def __init__(
        self,
        status: int,
        code: Code,
        detail: str | Message | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(self.members(status, code, detail, more), status, headers)

    @staticmethod
    def members(
        status: int, code: Code, detail: str | Message | None = None, more: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The document itself. `more` adds members of our own, such as `job_id`. A plain string has no key."""
        said = detail or MEANINGS[code].message
        return {
            "type": "about:blank",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": str(said),
            "code": code.value,
            "key": said.key if isinstance(said, Message) else None,
            "params": storable_json(said.params) if isinstance(said, Message) else {},
            **(more or {}),
        }


def install(app: Starlette) -> None:
    """Answer every exception with a problem document."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(WaybillError, _ours)
    app.add_middleware(Surprises)


async def _http(_request: Request, error: Exception) -> Problem:
    status, headers = 500, None
    if isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
    code = _CODES.get(status, Code.UNKNOWN if status >= 500 else Code.VALIDATION_ERROR)
    detail: str | Message | None = None
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        detail = msg("request.method")
    elif status not in _CODES:  # whatever else the framework refuses is explained by the status's own name
        detail = f"{HTTPStatus(status).description or HTTPStatus(status).phrase}."
    return Problem(status, code, detail, headers)


async def _ours(_request: Request, error: Exception) -> Problem:
    failure = classify(error)
    headers = {"Retry-After": str(math.ceil(failure.retry_after))} if failure.retry_after is not None else {}
    if failure.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    # A refusal may name a better status than its code does: a form that cannot be read is a 400.
    status = getattr(error, "status", failure.status)
    if failure.code is Code.DB_UNAVAILABLE:  # its message names the server, which clients must not learn
        log.warning("database_unavailable", error=failure.message)
        return Problem(status, failure.code, headers={"Retry-After": "1", **headers})
    # The sentence is the error's own: its key may be of the document library, or of another version of the gateway.
    more = {"key": failure.key, "params": storable_json(failure.params)}
    # The job it is about, and the page where a person can do something about it.
    more |= {name: failure.detail[name] for name in ("job_id", "review") if failure.detail and failure.detail.get(name)}
    return Problem(status, failure.code, failure.message, headers, more=more)


def _place(scope: Scope) -> dict[str, str | None]:
    """Where a request failed."""
    place = {"method": scope.get("method", ""), "route": route_of(scope)}
    if job_id := job_of(scope):
        place["job_id"] = job_id
    return place


def message_of(error: Failure | WaybillError) -> str | Message:
    """What a problem document says about an error."""
    return error.message if error.key is None else Message(error.key, error.params)


class Surprises:
    """Answers unexpected exceptions, once and with a problem document.

    This is not a handler for `Exception`, because the framework runs that one outside all middleware, without our
    headers, and raises the error again, so that it would be logged twice.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answering = False

        async def watched(message: AsgiMessage) -> None:
            nonlocal answering
            answering = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            failure = classify(error)
            if failure.code is Code.DB_UNAVAILABLE and not answering:
                await (await _ours(Request(scope), error))(scope, receive, send)
                return
            # An expected error is one line here, and a bug is a traceback: the log knows which is which.
            log.error("request_failed", **_place(scope), code=failure.code.value, exc_info=error)
            if answering:  # half an answer is sent already; all we can do is break it off
                raise
            await Problem(failure.status, failure.code)(scope, receive, send)
