"""Compresses text for clients that take gzip.

Only whole bodies are compressed: an event stream must arrive event by event, and downloads are streamed as they are
stored. The length of a compressed page tells something about its content, if a stranger can choose a part of it (the
attack is called BREACH). Our pages contain no secrets but what people uploaded, and only a browser that another site
sends here mixes that with a stranger's words. So requests that another site caused get plain answers.
"""

from __future__ import annotations

import asyncio
import gzip

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SMALLEST = 1024
_LEVEL = 5
_IN_A_THREAD = 64 * 1024
"""Bytes above which compressing would hold up the event loop."""
_TEXT = (
    "text/html",
    "text/css",
    "text/javascript",
    "text/plain",
    "application/json",
    "application/problem+json",
    "image/svg+xml",
)


class Compression:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _takes_gzip(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        start: Message | None = None

        async def compressed(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_text(Headers(raw=message["headers"])):
                start = message  # its headers depend on the body
                return
            if start is not None:
                body = message.get("body", b"")
                if not message.get("more_body", False) and len(body) >= _SMALLEST:
                    message = {**message, "body": await _gzip(body)}
                    _mark(start, len(message["body"]))
                await send(start)
                start = None
            await send(message)

        await self._app(scope, receive, compressed)


def _takes_gzip(request: Headers) -> bool:
    encodings = {part.strip().lower() for part in request.get("accept-encoding", "").split(",")}
    own = request.get("sec-fetch-site", "none") in ("none", "same-origin")
    return own and "gzip" in encodings


def _is_text(response: Headers) -> bool:
    kind = response.get("content-type", "").partition(";")[0].strip()
    return kind in _TEXT and "content-encoding" not in response and "content-range" not in response


def _mark(start: Message, length: int) -> None:
    headers = MutableHeaders(scope=start)
    headers["Content-Encoding"] = "gzip"
    headers["Content-Length"] = str(length)
    headers.add_vary_header("Accept-Encoding")
    if (tag := headers.get("etag", "")).startswith('"'):
        headers["ETag"] = f"W/{tag}"  # the same content in other bytes


async def _gzip(body: bytes) -> bytes:
    if len(body) < _IN_A_THREAD:
        return gzip.compress(body, _LEVEL, mtime=0)
    return await asyncio.to_thread(gzip.compress, body, _LEVEL, mtime=0)
