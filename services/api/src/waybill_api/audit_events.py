"""`GET /api/audit`: the audit trail, for admins; and the public key that checks it, for everybody."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import pydantic_core
from fastapi import APIRouter, Query, Response

from waybill import audit
from waybill.audit import queries
from waybill.audit.queries import EventFilter
from waybill.audit.signatures import Signer
from waybill.errors import Refused
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.web.openapi import refusals
from waybill.web.visitors import Admin, AnyVisitor, Shared
from waybill_api.schemas import AuditKeySchema, AuditSchema

router = APIRouter(prefix="/api", tags=["audit"])


@router.get("/audit", response_model=AuditSchema, responses=refusals())
async def audit_events(
    context: Shared,
    _admin: Admin,
    who: Annotated[
        str | None,
        Query(max_length=500, description="An actor, an address, or the id of a key, a session or a request."),
    ] = None,
    action: Annotated[
        str | None, Query(max_length=500, description="An action (`key.created`), or all that begin so (`key`).")
    ] = None,
    tenant: Annotated[str | None, Query(max_length=500, description="Events about things of this tenant.")] = None,
    subject: Annotated[str | None, Query(max_length=500, description="What it was done to: `job:<id>`.")] = None,
    since: Annotated[datetime | None, Query(description="Not before this time.")] = None,
    until: Annotated[datetime | None, Query(description="Before this time.")] = None,
    cursor: Annotated[
        str | None, Query(max_length=100, description="The next page: the `next` of an earlier answer.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=queries.MOST)] = 50,
) -> Response:
    """List what was done and refused, newest first. Only for admins; that somebody looked is an event, too."""
    if not all(is_storable(text) for text in (who, action, tenant, subject) if text is not None):
        raise Refused(msg("request.filter"))
    wanted = EventFilter(who, action, tenant, _aware(since), _aware(until), subject)
    async with context.database.hot() as connection:
        found = await queries.page(connection, wanted, cursor=cursor, limit=limit)
        await audit.record(connection, "audit.listed", "audit", tenant=tenant, detail={"events": len(found.events)})
    body = {"events": [event.record() for event in found.events], "next": found.next}
    return Response(pydantic_core.to_json(body), media_type="application/json", headers={"Cache-Control": "no-store"})


@router.get("/audit/key", response_model=AuditKeySchema, responses=refusals())
async def audit_key(context: Shared, _anybody: AnyVisitor) -> AuditKeySchema:
    """The public key that checks the audit trail. It can sign nothing."""
    async with context.database.hot() as connection:
        signer = await Signer.of(context.settings, connection)
    return AuditKeySchema(algorithm="Ed25519", fingerprint=signer.fingerprint, public_key=signer.pem)


def _aware(moment: datetime | None) -> datetime | None:
    """A time without a zone is UTC, like all of ours."""
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
