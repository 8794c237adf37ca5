"""The audit trail of a request: who sent it, and that it was refused.

All events that a request leaves have its id (`waybill.http.access_log`), which the answer carries as `X-Request-Id`.
Refusals (401, 403, 429) are counted by whom they meet and where; see `waybill.audit.refusals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from waybill.audit import Actor, RefusalCounter, Trail, acting_as, trail
from waybill.http.access_log import request_id_of
from waybill.http.request_place import route_of
from waybill.web.addresses import address_of

if TYPE_CHECKING:
    from waybill.web.visitors import Visitor

_REFUSALS = frozenset({401, 403, 429})
VISITOR = "visitor"
"""Somebody without a key and without a session of before. They have an address."""


class RequestTrail:
    def __init__(self, app: ASGIApp, refusals: RefusalCounter) -> None:
        self._app = app
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        actor = Actor(VISITOR, address=address_of(Request(scope)), request_id=request_id_of(scope))
        with acting_as(actor, self._refusals) as begun:

            async def watched(message: Message) -> None:
                refused = message["type"] == "http.response.start" and message["status"] in _REFUSALS
                if refused and not begun.noted:
                    self._count(scope, begun, message["status"])
                await send(message)

            await self._app(scope, receive, watched)

    def _count(self, scope: Scope, begun: Trail, status: int) -> None:
        # Only routes have names: a path is whatever somebody typed, and there is no end to those.
        path = route_of(scope)
        subject = f"{scope['method']} {path}" if path is not None else None
        self._refusals.count(begun.actor, "request.refused", subject, status=status)


def remember_visitor(visitor: Visitor) -> None:
    """From here on, what this request does is done by this visitor."""
    current, principal = trail(), visitor.principal
    session_id = visitor.session.id if visitor.session is not None and visitor.met_before else None
    # A browser that we have not met has another name with each request.
    name = principal.owner if visitor.met_before or principal.signed_in else VISITOR
    current.actor = Actor(name, principal.key_id, session_id, current.actor.address, current.actor.request_id)
    bind_contextvars(tenant=principal.tenant)
