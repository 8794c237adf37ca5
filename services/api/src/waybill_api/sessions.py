"""`/session`: sign a browser in with an API key and out again, say who it is, and erase what it uploaded."""

from __future__ import annotations

import time

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, Field, ValidationError

from waybill import audit, rate_limits
from waybill.errors import Conflict, RateLimited, Unauthorized
from waybill.failures import is_database_outage
from waybill.http.multipart import BadForm
from waybill.messages import msg
from waybill.pipelines import brought
from waybill.security import COOKIE, Principal, Session, of_session
from waybill.security.sessions import end, ended_topic, tell_left
from waybill.telemetry.metrics import RATE_LIMITED
from waybill.web.addresses import address_of
from waybill.web.context import Context
from waybill.web.layout import landing_of
from waybill.web.openapi import refusals
from waybill.web.request_trail import remember_visitor
from waybill.web.visitors import AnyVisitor, Shared, Visitor, is_secure, set_cookie
from waybill_api.schemas import ErasureSchema, SessionSchema
from waybill_engine import erasure

log: structlog.stdlib.BoundLogger = structlog.get_logger()
router = APIRouter(tags=["session"])

_TRIES_PER_MINUTE = 10
_ERASING_MAY_TAKE = 10.0
"""Seconds that a request may take; the janitor does the rest."""


class SignIn(BaseModel):
    key: str = Field(max_length=200, examples=["wb_…"])


@router.get("/api/session", response_model=SessionSchema, responses=refusals())
async def whoami(visitor: AnyVisitor) -> SessionSchema:
    """Who you are, and what you may do."""
    return _session_of(visitor)


@router.delete(
    "/api/session",
    response_model=ErasureSchema,
    responses={
        202: {"model": ErasureSchema, "description": "It has begun; the rest is removed automatically."},
        **refusals(409, 413),
    },
)
async def forget_me(request: Request, visitor: AnyVisitor, context: Shared) -> Response:
    """Erase everything this browser uploaded, and end its session. 409 for a tenant, or under legal hold."""
    if visitor.session is None or visitor.principal.signed_in:
        raise Conflict(msg("request.tenant_owned"))
    principal = visitor.principal
    async with context.database.hot() as connection:
        erasure_id = await erasure.request(connection, principal.tenant, owner=principal.owner)
    erasers = brought("erasure")
    done = await erasure.erase(context.database, context.storage, erasers, erasure_id, within=_ERASING_MAY_TAKE)
    context.changes.changed(principal.owner)
    await _end(context, visitor.session)
    finished = done.finished_at is not None
    answer = ErasureSchema(finished=finished, jobs=done.jobs, files=done.files)
    response = JSONResponse(answer.model_dump(), 200 if finished else 202)
    response.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=is_secure(request))
    return response


@router.post(
    "/session",
    response_model=SessionSchema,
    responses={
        303: {"description": "For a form: redirects to the queue, or for an admin to `/ops`."},
        **refusals(408, 413, 429),
    },
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
    """Sign this browser in with an API key. It then shares everything with the key's tenant.

    Its earlier uploads become the tenant's, if the key may upload. Otherwise they are back after signing out.
    """
    is_form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    try:
        principal = await context.keys.of_text(await _key(request, is_form=is_form))
    except Unauthorized:
        audit.refuse("session.refused")
        await _count_guess(request, context)
        raise
    session = await _begin(request, context, principal)
    await _record_start(context, Visitor(principal, session))
    response: Response
    if is_form:
        response = RedirectResponse(landing_of(principal), 303)
    else:
        response = JSONResponse(_session_of(Visitor(principal, session)).model_dump())
    set_cookie(request, response, session)
    return response


async def _record_start(context: Context, visitor: Visitor) -> None:
    """A sign-in that cannot be recorded does not happen: its session's cookie is not sent."""
    remember_visitor(visitor)
    principal = visitor.principal
    detail = {"permissions": sorted(principal.permissions)}
    async with context.database.hot() as connection:
        await audit.record(
            connection, "session.started", f"key:{principal.key_id}", tenant=principal.tenant, detail=detail
        )


async def _count_guess(request: Request, context: Context) -> None:
    """RateLimited if too many keys were wrong. A right one is never refused: others may guess from the same address.

    A flood is refused by this process, so that it does not ask the database, whose limit holds across replicas.
    """
    await context.wrong_keys.count(address_of(request))
    async with context.database.hot() as connection:
        wait = await rate_limits.take(connection, f"sign-in:{address_of(request)}", limit=_TRIES_PER_MINUTE)
    if wait is not None:
        RATE_LIMITED.labels("sign_in").inc()
        raise RateLimited(retry_after=wait)


async def _key(request: Request, *, is_form: bool) -> str:
    try:
        if is_form:
            form = await request.form(max_files=0, max_fields=10)
            return SignIn.model_validate({"key": form.get("key", "")}).key.strip()
        return SignIn.model_validate_json(await request.body()).key.strip()
    except ValidationError:
        raise BadForm(msg("api_key.wanted")) from None


@router.post(
    "/session/end",
    status_code=204,
    responses={303: {"description": "For a form: redirects to the start page."}, **refusals()},
)
async def sign_out(request: Request, context: Shared) -> Response:
    """Sign this browser out. It returns to its earlier session, or gets a new one with its next page."""
    session = await _current(request, context)
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
    """Start the session of a browser that signed in, and hand over what it uploaded before."""
    now = time.time()
    old = await _current(request, context)
    own = None if old is None else old.id if old.key_id is None else old.before
    if own is not None and await context.adopt(of_session(own).owner, principal):
        own = None
    if old is not None:
        await _end(context, old, comes_back=old.id == own)
    return context.signer.start(now, principal.key_id, own)


async def _current(request: Request, context: Context) -> Session | None:
    """The session of the request's cookie, unless it has ended. Signing out works during a database outage, too."""
    session = context.signer.load(request.cookies.get(COOKIE), time.time())
    try:
        return None if session is None or await context.sessions.has_ended(session.id) else session
    except Exception as error:
        if not is_database_outage(error):
            raise
        return session


async def _end(context: Context, session: Session, *, comes_back: bool = False) -> None:
    """End a session, or only its streams if the browser comes back to it after signing out.

    During a database outage only this replica knows, and not for ever: the log says so.
    """
    if comes_back:
        context.changes.changed(ended_topic(session.id))
    else:
        context.sessions.end(session.id)
    try:
        async with context.database.hot() as connection:
            if comes_back:
                await tell_left(connection, session.id)
            else:
                async with connection.transaction():
                    await end(connection, session.id, lasts=context.signer.max_age)
                    if session.key_id is not None:
                        detail = {"key": session.key_id}
                        await audit.record(connection, "session.ended", f"session:{session.id}", detail=detail)
    except Exception as error:
        if not is_database_outage(error):
            raise
        log.warning("sign_out_not_told", error=str(error) or type(error).__name__)


def _session_of(visitor: Visitor) -> SessionSchema:
    principal = visitor.principal
    return SessionSchema(
        signed_in=principal.signed_in, tenant=principal.tenant, permissions=sorted(principal.permissions)
    )
