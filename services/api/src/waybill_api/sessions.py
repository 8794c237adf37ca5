"""`/session`: signing a browser in with an API key, and out again; who am I, and forget me."""

from __future__ import annotations

import time

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, Field, ValidationError

from waybill import erasure, rate_limits
from waybill.errors import Conflict, RateLimited, is_database_outage
from waybill.http.multipart import BadForm
from waybill.security import COOKIE, Permission, Principal, Session, of_session
from waybill.security.sessions import ended_topic, tell_ended
from waybill.web.context import Context
from waybill.web.openapi import refusals
from waybill.web.visitors import AnyVisitor, Shared, Visitor, is_secure, set_cookie
from waybill_convert.schemas import ErasureShape, SessionShape

log: structlog.stdlib.BoundLogger = structlog.get_logger()
router = APIRouter(tags=["session"])

_TRIES_PER_MINUTE = 10
_ERASING_MAY_TAKE = 10.0
"""Seconds of a request; the janitor goes on after that."""


class SignIn(BaseModel):
    key: str = Field(max_length=200, examples=["wb_…"])


@router.get("/api/session", response_model=SessionShape, responses=refusals())
async def whoami(visitor: AnyVisitor) -> SessionShape:
    """Who you are to us."""
    return _shape(visitor)


@router.delete(
    "/api/session",
    response_model=ErasureShape,
    responses={
        202: {"model": ErasureShape, "description": "Under way; the rest goes by itself."},
        **refusals(409, 413),
    },
)
async def forget_me(request: Request, visitor: AnyVisitor, context: Shared) -> Response:
    """Remove everything this browser uploaded, for good, and end its session. 409 for a tenant, or under legal hold."""
    if visitor.session is None or visitor.principal.signed_in:
        raise Conflict("This is a tenant's, not one browser's. An operator can erase it: waybill tenant erase")
    principal = visitor.principal
    async with context.database.hot() as connection:
        erasure_id = await erasure.request(connection, principal.tenant, owner=principal.owner)
    done = await erasure.erase(context.database, context.storage, erasure_id, within=_ERASING_MAY_TAKE)
    context.changes.changed(principal.owner)
    finished = done.finished_at is not None
    shape = ErasureShape(finished=finished, jobs=done.jobs, files=done.files)
    response = JSONResponse(shape.model_dump(), 200 if finished else 202)
    response.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=is_secure(request))
    return response


@router.post(
    "/session",
    response_model=SessionShape,
    responses={303: {"description": "For a form: on to the queue."}, **refusals(408, 413, 429)},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": SignIn.model_json_schema()},
                "application/x-www-form-urlencoded": {"schema": SignIn.model_json_schema()},
            },
        }
    },
)
async def sign_in(request: Request, context: Shared) -> Response:
    """Sign this browser in with an API key: it then sees and owns what the key's tenant does.

    What it uploaded before comes along, if the key may upload; otherwise it is there again after signing out.
    """
    address = request.client.host if request.client else "unknown"
    async with context.database.hot() as connection:
        wait = await rate_limits.take(connection, f"sign-in:{address}", limit=_TRIES_PER_MINUTE)
    if wait is not None:
        raise RateLimited(retry_after=wait)
    is_form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    principal = await context.keyring.of_text(await _key(request, is_form=is_form))
    session = await _begin(request, context, principal)
    response: Response
    if is_form:
        response = RedirectResponse("/queue", 303)
    else:
        response = JSONResponse(_shape(Visitor(principal, session)).model_dump())
    set_cookie(request, response, session)
    return response


async def _key(request: Request, *, is_form: bool) -> str:
    try:
        if is_form:
            form = await request.form(max_files=0, max_fields=10)
            return SignIn.model_validate({"key": form.get("key", "")}).key.strip()
        return SignIn.model_validate_json(await request.body()).key.strip()
    except ValidationError:
        raise BadForm('Send the key as JSON {"key": "wb_…"}, or in the form field \'key\'.') from None


@router.post(
    "/session/end",
    status_code=204,
    responses={303: {"description": "For a form: on to the first page."}, **refusals()},
)
async def sign_out(request: Request, context: Shared) -> Response:
    """Sign this browser out. It goes back to what it was, or gets a new session with its next page."""
    session = context.signer.load(request.cookies.get(COOKIE), time.time())
    if session is not None:
        await _end(context, session)
    wants_page = "text/html" in request.headers.get("accept", "")
    response = RedirectResponse("/", 303) if wants_page else Response(status_code=204)
    if session is not None and session.before is not None:
        set_cookie(request, response, context.signer.leave(session, time.time()))
    else:
        response.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=is_secure(request))
    return response


async def _begin(request: Request, context: Context, principal: Principal) -> Session:
    """The session of a browser that has shown a key, and with it what the browser uploaded until now."""
    now = time.time()
    old = context.signer.load(request.cookies.get(COOKIE), now)
    own = None if old is None else old.id if old.key_id is None else old.before
    if own is not None and principal.may(Permission.CONVERT_WRITE):
        await context.conversions.adopt(of_session(own).owner, principal)
        own = None
    if old is not None:
        await _end(context, old)
    return context.signer.start(now, principal.key_id, own)


async def _end(context: Context, session: Session) -> None:
    """Tell the replicas that serve its streams. Whoever wants out gets out, also while the database is away."""
    context.changes.changed(ended_topic(session.id))
    try:
        async with context.database.hot() as connection:
            await tell_ended(connection, session.id)
    except Exception as error:
        if not is_database_outage(error):
            raise
        log.warning("sign_out_not_told", error=str(error) or type(error).__name__)


def _shape(visitor: Visitor) -> SessionShape:
    principal = visitor.principal
    return SessionShape(
        signed_in=principal.signed_in, tenant=principal.tenant, permissions=sorted(principal.permissions)
    )
