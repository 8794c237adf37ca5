"""Methods: HEAD is answered wherever GET is, and a 405 names every method that an address has.

The framework has one route per method, and its 405 names the first one only. It also takes `/api/jobs/download` for a
job with that name when the method is DELETE; here an address that is written out in a route means only that route.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waybill.errors import Code
from waybill.http import Problem
from waybill.messages import msg

_HEAD = "waybill.head"


def is_head(request: Request) -> bool:
    """Whether only the headers are asked for. A route that streams, counts or draws asks this and saves the work."""
    return bool(request.scope.get(_HEAD))


def headers_only(headers: Mapping[str, str], media_type: str) -> StreamingResponse:
    """An answer to HEAD. Unlike an empty answer, it does not say that the content is empty."""
    return StreamingResponse(_nothing(), headers=headers, media_type=media_type)


async def _nothing() -> AsyncIterator[bytes]:
    yield b""


class Methods:
    """Runs right before the routes. The server drops the body of an answer to HEAD."""

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._routes = [route for route in routes if isinstance(route, Route)]
        self._literal: dict[str, set[str]] = {}
        for route in self._routes:
            if "{" not in route.path:
                self._literal.setdefault(route.path, set()).update(_methods(route))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if scope["method"] not in self._literal.get(path, (scope["method"],)):
            headers = {"Allow": self._allow(path)}
            await Problem(405, Code.VALIDATION_ERROR, msg("request.method"), headers)(scope, receive, send)
            return
        outer = scope
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", _HEAD: True}

        async def complete(message: Message) -> None:
            if "route" in scope:
                outer["route"] = scope["route"]  # whoever counts and logs requests sees the outer one
            if message["type"] == "http.response.start" and message["status"] == 405:
                MutableHeaders(scope=message)["Allow"] = self._allow(path)
            await send(message)

        await self._app(scope, receive, complete)

    def _allow(self, path: str) -> str:
        found = self._literal.get(path)
        if found is None:
            found = set().union(*(_methods(route) for route in self._routes if route.path_regex.match(path)))
        return ", ".join(sorted(found))


def _methods(route: Route) -> set[str]:
    methods = set(route.methods or ())
    return methods | {"HEAD"} if "GET" in methods else methods
