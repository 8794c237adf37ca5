"""Who sent this request: a program with a key, a browser that signed in with one, or a browser by itself.

Routes ask for a visitor with a permission (`needs`). A request without a key or a cookie comes from a browser that we
have not met: it owns nothing yet, and gets its cookie with the first page or upload (`Visitor.welcome`).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Annotated

from fastapi import Depends, Request, Response

from waybill.errors import Forbidden, Unauthorized
from waybill.messages import msg
from waybill.security import ADMIN, COOKIE, Principal, Session, of_session
from waybill.web.addresses import address_of
from waybill.web.context import Context, context_of
from waybill.web.request_limits import HEAVY, READ
from waybill.web.request_trail import remember_visitor


@dataclass(slots=True)
class Visitor:
    """Who sent the request, and how we know."""

    principal: Principal
    session: Session | None = field(default=None)
    """None for a program with a key."""
    met_before: bool = True
    """False for a browser without a cookie of ours."""

    def welcome(self, request: Request, response: Response) -> None:
        """Give a browser its cookie, if it has none or its cookie is getting old."""
        context = context_of(request)
        if self.session is None:
            return
        if self.met_before and not context.signer.worth_renewing(self.session, time.time()):
            return
        if self.met_before:
            self.session = replace(self.session, issued_at=int(time.time()))
        set_cookie(request, response, self.session)


def set_cookie(request: Request, response: Response, session: Session) -> None:
    context = context_of(request)
    response.set_cookie(
        COOKIE,
        context.signer.dump(session),
        max_age=context.signer.max_age,
        httponly=True,
        samesite="lax",
        secure=is_secure(request),
    )


def is_secure(request: Request) -> bool:
    return context_of(request).settings.api_https or request.url.scheme == "https"


async def visitor(request: Request) -> Visitor:
    """Who is asking. Within one request, this is worked out once."""
    known: Visitor | None = getattr(request.state, "visitor", None)
    if known is None:
        context = context_of(request)
        known = await _find(request, context)
        remember_visitor(known)
        context.limits.take(known, address_of(request), READ)
        request.state.visitor = known
    return known


async def _find(request: Request, context: Context) -> Visitor:
    authorization = request.headers.get("authorization")
    if authorization is not None:
        try:
            return Visitor(await _owner(authorization, context))
        except Unauthorized:
            await context.wrong_keys.count(address_of(request))
            raise
    now = time.time()
    session = context.signer.load(request.cookies.get(COOKIE), now)
    if session is None or await context.sessions.has_ended(session.id):
        session = context.signer.start(now)
        return Visitor(of_session(session.id), session, met_before=False)
    if session.key_id is None:
        return Visitor(of_session(session.id), session)
    try:
        return Visitor(await context.keys.of_id(session.key_id), session)
    except Unauthorized:  # its key was revoked or has expired, so it is signed out
        session = context.signer.leave(session, now)
        return Visitor(of_session(session.id), session, met_before=False)


async def _owner(authorization: str, context: Context) -> Principal:
    """Whose key a program sent."""
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized(msg("api_key.bearer"))
    return await context.keys.of_text(key.strip())


def needs(*permissions: str) -> Callable[..., Awaitable[Visitor]]:
    """A dependency that lets in only visitors with all these permissions."""

    async def allowed(found: Annotated[Visitor, Depends(visitor)]) -> Visitor:
        for permission in permissions:
            if not found.principal.may(permission):
                raise Forbidden(msg("api_key.permission", permission=permission))
        return found

    return allowed


async def _shared(request: Request) -> Context:
    """`context_of` as a dependency. It is a coroutine because FastAPI runs plain functions in a thread."""
    return context_of(request)


async def heavy(request: Request, found: Annotated[Visitor, Depends(visitor)]) -> None:
    """A dependency of routes that cost more than a plain read."""
    context_of(request).limits.take(found, address_of(request), HEAVY - READ)


AnyVisitor = Annotated[Visitor, Depends(visitor)]
Admin = Annotated[Visitor, Depends(needs(ADMIN))]
Shared = Annotated[Context, Depends(_shared)]
