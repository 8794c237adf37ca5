"""`GET /api/admin/jobs`: the conversions of all tenants, for admins."""

from __future__ import annotations

import uuid
from typing import Annotated

import pydantic_core
from fastapi import APIRouter, Query, Response

from waybill.errors import Refused
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.web.openapi import refusals
from waybill.web.visitors import Admin
from waybill_convert.schemas import AdminListingSchema, foreign_job_json
from waybill_convert.service import MOST_LISTED
from waybill_convert.status import Status
from waybill_convert.web_context import Shared

router = APIRouter(prefix="/api/admin", tags=["admin"])


@router.get("/jobs", response_model=AdminListingSchema, responses=refusals())
async def list_all_jobs(
    context: Shared,
    _admin: Admin,
    tenant: Annotated[str | None, Query(max_length=200, description="Only jobs of this tenant.")] = None,
    status: Annotated[list[Status] | None, Query(description="Only jobs with these states; may be repeated.")] = None,
    cursor: Annotated[uuid.UUID | None, Query(description="The next page: the `next` of an earlier answer.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
) -> Response:
    """List the jobs of all tenants, newest first. Each look is recorded in the audit trail."""
    if tenant is not None and not is_storable(tenant):
        raise Refused(msg("convert.list.search"))
    found = await context.conversions.everybodys(tenant=tenant, statuses=status or (), before=cursor, limit=limit)
    jobs = [{**foreign_job_json(each.job), "tenant": each.tenant, "owner": each.owner} for each in found.jobs]
    return Response(pydantic_core.to_json({"jobs": jobs, "next": found.next}), media_type="application/json")
