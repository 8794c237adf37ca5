"""Who may ask the gateway: services that know its secret, and never a web page.

Probes are answered to anybody. Every other request proves that its caller knows the secret (`waybill.http.proofs`), and
every answer to such a request proves that it comes from a gateway that does. Browsers say which page sent a request;
the gateway is for none of them.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waybill.errors import Code
from waybill.http import Problem
from waybill.http.proofs import ANSWER_HEADER, SCHEME, Asked, Doorman, Unproven
from waybill.messages import msg
from waybill_gateway.body import Body
from waybill_gateway.responses import send_problem

PROBES = frozenset({"/livez", "/readyz"})
_PROVEN = "waybill.proven"
_REASONS = {
    "missing": msg("gateway.secret_missing"),
    "wrong": msg("gateway.secret_wrong"),
    "late": msg("gateway.secret_late"),
    "repeated": msg("gateway.secret_repeated"),
}


class Callers:
    def __init__(self, app: ASGIApp, doorman: Doorman | None, *, most_bytes: int, is_open: bool) -> None:
        """`is_open` lets in callers that prove nothing. A wrong proof is refused anyway."""
        self._app = app
        self._doorman = doorman
        self._most = most_bytes
        self._open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if scope["path"] in PROBES and "authorization" not in headers:
            await self._app(scope, receive, send)
            return
        asked: Asked | None = None
        try:
            if _is_from_a_page(headers):
                refusal = Problem(403, Code.FORBIDDEN, msg("gateway.from_a_page"))
                await self._refuse(refusal, headers, receive, send)
                return
            asked = self._check(scope, headers)
        except Unproven as unproven:
            challenge = {"WWW-Authenticate": SCHEME}
            refusal = Problem(401, Code.UNAUTHORIZED, _REASONS[unproven.fault], challenge)
            await self._refuse(refusal, headers, receive, send)
            return

        if asked is not None:
            scope[_PROVEN] = True

        async def prove(message: Message) -> None:
            if asked is not None and message["type"] == "http.response.start":
                MutableHeaders(scope=message)[ANSWER_HEADER] = asked.answer(message["status"])
            await send(message)

        await self._app(scope, receive, prove)

    def _check(self, scope: Scope, headers: Headers) -> Asked | None:
        if self._doorman is None:
            return None
        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        try:
            return self._doorman.check(scope["method"], path, headers.get("authorization"))
        except Unproven as unproven:
            if self._open and unproven.fault == "missing":
                return None
            raise

    async def _refuse(self, problem: Problem, headers: Headers, receive: Receive, send: Send) -> None:
        waits = headers.get("expect", "").lower() == "100-continue"
        await send_problem(problem, Body(receive, waits_for_continue=waits), send, most=self._most)


def is_proven(scope: Scope) -> bool:
    """Whether the caller of this request has proven that it is one of our services."""
    return bool(scope.get(_PROVEN))


def _is_from_a_page(headers: Headers) -> bool:
    return "origin" in headers or headers.get("sec-fetch-site", "none") != "none"
