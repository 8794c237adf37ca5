"""Checks before every route: host names, requests from other sites, and the size and pace of bodies.

Each is a plain ASGI middleware that answers with a problem document. `waybill_api.app` says in which order they run.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waybill.errors import Code, Refused
from waybill.http import Problem
from waybill.http.problems import message_of
from waybill.messages import msg

log: structlog.stdlib.BoundLogger = structlog.get_logger()

PROBES = frozenset({"/livez", "/readyz"})
"""Probes call us by address, so their host name is not checked."""

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_SMALL = 64 * 1024
_SLOWEST = 2048
"""Bytes per second that a body must bring, once the first seconds are over."""
_DRAIN_SECONDS, _DRAIN_BYTES = 5.0, 64 * 1024 * 1024


class TooSlow(Refused):
    """The client took too long to send."""

    status = 408


class TrustedHosts:
    """Answers only to our own host names: a page elsewhere that points its own name at us gets nothing."""

    def __init__(self, app: ASGIApp, hosts: list[str]) -> None:
        self._app = app
        self._exact = {host.lower() for host in hosts if not host.startswith("*.")}
        self._endings = tuple(host[1:].lower() for host in hosts if host.startswith("*."))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in PROBES and not self._known(Headers(scope=scope)):
            problem = Problem(400, Code.VALIDATION_ERROR, msg("request.other_host"))
            await problem(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _known(self, headers: Headers) -> bool:
        host = headers.get("host", "").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return name in self._exact or name.endswith(self._endings) if self._endings else name in self._exact


class SameSite:
    """Refuses changes that a page of another site makes in a browser's name.

    The cookie is `SameSite=Lax` already; this guard covers what that does not (sister domains, old browsers). A request
    with an API key passes, because no browser sends one by itself.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in SAFE and self._foreign(scope):
            await Problem(403, Code.FORBIDDEN, msg("request.other_site"))(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _foreign(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        if "authorization" in headers:
            return False
        # `none` is an address that was typed or bookmarked. Browsers leave the header out over plain HTTP.
        if (site := headers.get("sec-fetch-site")) is not None:
            return site not in ("same-origin", "none")
        if (origin := headers.get("origin")) is not None:
            try:
                parts = urlsplit(origin)
            except ValueError:
                return True
            return (parts.scheme, parts.netloc.lower()) != (scope["scheme"], headers.get("host", "").lower())
        return False  # it is not a browser, so nobody can trick it


class Bodies:
    """Limits bodies, and makes sure that a refused client can read the answer.

    Only uploads may be large; they have limits of their own, and so have the routes in `limits`. We wait `patience`
    seconds for a body, and longer as more of it arrives, so that a client which sends a byte now and then cannot keep
    us. Only time spent waiting counts.

    Closing a connection with unread bytes resets it, and the client may then lose the answer. So we send a refusal
    first, and then read and drop what the client still sends, up to a limit.
    """

    def __init__(self, app: ASGIApp, uploads: frozenset[str], limits: Mapping[str, int], patience: float) -> None:
        self._app = app
        self._uploads = uploads
        self._limits = [(compile_path(path)[0], limit) for path, limit in limits.items()]
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in SAFE:
            await self._app(scope, receive, send)
            return
        body = _Body(scope, receive, send, self._patience)
        if scope["path"] in self._uploads:
            try:
                await self._app(scope, body.receive, body.send)
            except ClientDisconnect:
                log.info("client_gone", route=scope["path"])  # it is one that we declared
            return
        try:
            whole = await body.read(most := self._most(scope["path"]))
        except TooSlow as slow:
            await Problem(slow.status, slow.code, message_of(slow))(scope, receive, body.send)
            return
        if whole is None:
            detail = msg("request.too_large_kb", kilobytes=most // 1024)
            await Problem(413, Code.TOO_LARGE, detail)(scope, receive, body.send)
            return
        await self._app(scope, _replayed(whole, receive), send)

    def _most(self, path: str) -> int:
        return next((limit for pattern, limit in self._limits if pattern.match(path)), _SMALL)


class _Body:
    def __init__(self, scope: Scope, receive: Receive, send: Send, patience: float) -> None:
        headers = Headers(scope=scope)
        self._receive, self._send = receive, send
        self._ended = headers.get("content-length") == "0"
        self._begun = "100-continue" not in headers.get("expect", "").lower()
        self._refused = False
        length = headers.get("content-length", "")
        self._length = int(length) if length.isdigit() and len(length) < 19 else 0
        self._patience = patience

    async def receive(self) -> Message:
        self._begun = True
        loop = asyncio.get_running_loop()
        asked = loop.time()
        if self._ended:  # the client can only hang up now, and may take its time
            return await self._receive()
        try:
            async with asyncio.timeout(self._patience):
                message = await self._receive()
        except TimeoutError:
            raise TooSlow(msg("request.too_slow")) from None
        self._patience += len(message.get("body", b"")) / _SLOWEST - (loop.time() - asked)
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._refused = message["status"] >= 400
            if self._refused and not self._ended:  # the bytes that still come are not a request
                MutableHeaders(scope=message)["Connection"] = "close"
        last = message["type"] == "http.response.body" and not message.get("more_body", False)
        # A client that waits for "100 Continue" sends nothing more once it has the answer.
        if last and self._refused and not self._ended and self._begun:
            await self._send({**message, "more_body": True})
            await self._drain()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def read(self, most: int) -> bytes | None:
        """The whole body; None if it is larger than `most`."""
        if self._length > most:
            return None
        data = bytearray()
        while not self._ended:
            message = await self.receive()
            data += message.get("body", b"")
            if len(data) > most:
                return None
        return bytes(data)

    async def _drain(self) -> None:
        left = _DRAIN_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self._ended and left > 0:
                    message = await self._receive()
                    self._ended = message["type"] != "http.request" or not message.get("more_body", False)
                    left -= len(message.get("body", b""))


def _replayed(body: bytes, receive: Receive) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
