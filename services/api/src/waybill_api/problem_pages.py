"""Problem documents as pages: a browser that opens an address gets a page with the same status and message."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waybill.web.languages import Language, language_of
from waybill.web.layout import frame, page, render

_KEPT = ("retry-after", "allow", "set-cookie")
_LARGEST = 64 * 1024


class ProblemPages:
    """Turns a problem document into a page for a browser that opens an address. Programs get the document."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _wants_page(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def translate(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                if Headers(raw=message["headers"]).get("content-type") == "application/problem+json":
                    start = message
                    return
            elif start is not None and message["type"] == "http.response.body":
                body += message.get("body", b"")
                if not message.get("more_body") or len(body) > _LARGEST:
                    await _page(Request(scope), start, body)(scope, receive, send)
                return
            await send(message)

        await self._app(scope, receive, translate)


def _wants_page(headers: Headers) -> bool:
    """A browser that navigates accepts HTML; our scripts and programs do not ask for it."""
    return "text/html" in headers.get("accept", "") and "hx-request" not in headers


def _page(request: Request, start: Message, body: bytes) -> ASGIApp:
    status: int = start["status"]
    document, language = _read(body), language_of(request)
    detail = language.explain(document)
    if status == 401:  # the key is not valid: show the form to enter another one
        text = render("sign_in.html", language, page=frame(request), why=detail)
    else:
        shown = {"status": status, "code": document.code, "headline": _headline(status, language), "detail": detail}
        text = render("problem.html", language, page=frame(request), problem=shown)
    response = page(text, language, status)
    kept, headers = MutableHeaders(raw=start["headers"]), response.headers
    for name in _KEPT:
        for value in kept.getlist(name):
            headers.append(name, value)
    return response


def _headline(status: int, language: Language) -> str:
    if f"problem.{status}" in language.messages:
        return language.say(f"problem.{status}")
    return language.say("problem.refused") if status < 500 else language.say("problem.broken")


@dataclass(frozen=True, slots=True)
class _Document:
    """A problem document, as far as a page shows it."""

    code: str
    message: str
    key: str | None
    params: dict[str, Any]


def _read(body: bytes) -> _Document:
    try:
        found = json.loads(body)
    except ValueError:
        found = {}
    members: dict[str, Any] = found if isinstance(found, dict) else {}
    key, params = members.get("key"), members.get("params")
    return _Document(
        str(members.get("code", "UNKNOWN")),
        str(members.get("detail", "")),
        key if isinstance(key, str) else None,
        params if isinstance(params, dict) else {},
    )
