"""Problem documents for people: who asks for a page gets a page, with the same status and the same words."""

from __future__ import annotations

import json
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waybill.web.languages import Language, language_of
from waybill.web.layout import frame, page, render

_KEPT = ("retry-after", "allow", "set-cookie")
_LARGEST = 64 * 1024


class ProblemPages:
    """Turns a problem document into a page for a browser that opens an address, and for nobody else."""

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
    """A browser that navigates names HTML first; our scripts and programs do not name it at all."""
    return "text/html" in headers.get("accept", "") and "hx-request" not in headers


def _page(request: Request, start: Message, body: bytes) -> ASGIApp:
    status: int = start["status"]
    document, language = _read(body), language_of(request)
    code = str(document.get("code", "UNKNOWN"))
    detail = language.explain(code, str(document.get("detail", "")))
    if status == 401:  # a key that is none, or none any more: here is where to give another
        text = render("sign_in.html", language, page=frame(request, "sign-in"), why=detail)
    else:
        shown = {"status": status, "code": code, "headline": _headline(status, language), "detail": detail}
        text = render("problem.html", language, page=frame(request, "problem"), problem=shown)
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


def _read(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
