"""`/api/mappings`: the mappings to choose from, and a tenant's own: draft, samples, test, publish, retire."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import pydantic_core
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from waybill.errors import Code, Forbidden, Refused
from waybill.http import Problem
from waybill.http.problems import message_of
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.security import ADMIN
from waybill.web.departures import while_connected
from waybill.web.openapi import refusals
from waybill.web.visitors import AnyVisitor, Visitor, heavy
from waybill_convert.api.revisions import author_of
from waybill_convert.api.uploads import choices_of
from waybill_convert.mapping_models import SHARED, InvalidMapping, SamplesFail
from waybill_convert.mapping_schemas import (
    MappingPushSchema,
    MappingSampleSchema,
    MappingsSchema,
    PublishedSchema,
    TestSchema,
    WholeMappingSchema,
    mappings_json,
    results_json,
    sample_json,
    whole_json,
)
from waybill_convert.permissions import MAPPINGS_READ, MappingReader, MappingWriter
from waybill_convert.sample_form import receive_sample
from waybill_convert.web_context import Shared
from waybill_documents.mapping_files import MappingFiles

router = APIRouter(prefix="/api/mappings", tags=["mappings"])

Name = Annotated[str, Path(pattern=r"^[a-z][a-z0-9_]{0,63}$", examples=["acme_v1"])]
ForAll = Annotated[bool, Query(alias="shared", description="The mapping is shared with all tenants; for admins.")]


@router.get("", response_model=MappingsSchema, responses=refusals())
async def list_mappings(context: Shared, visitor: AnyVisitor) -> Response:
    """The mappings you can choose from, and those of your tenant."""
    may_read = visitor.principal.may(MAPPINGS_READ)
    own = await context.tenant_mappings.ls(visitor.principal.tenant) if may_read else []
    return _json(
        mappings_json((await choices_of(context, visitor)).values(), own, default=context.settings.default_mapping)
    )


@router.post(
    "",
    dependencies=[Depends(heavy)],
    status_code=201,
    response_model=WholeMappingSchema,
    responses=refusals(400, 409, 413, 429, 503),
)
async def create(
    wanted: MappingPushSchema, context: Shared, visitor: MappingWriter, shared: ForAll = False
) -> Response:
    """Create a draft. Its name is that in its document."""
    return await _push(context, visitor, wanted, None, shared)


@router.get("/{name}", response_model=WholeMappingSchema, responses=refusals(404))
async def get_mapping(name: Name, context: Shared, visitor: MappingReader, shared: ForAll = False) -> Response:
    """Get a mapping of your tenant, or one that is shared with it, with its text."""
    return _json(whole_json(await context.tenant_mappings.get(_whose(visitor, shared), name)))


@router.put(
    "/{name}",
    dependencies=[Depends(heavy)],
    response_model=WholeMappingSchema,
    responses=refusals(400, 409, 413, 429, 503),
)
async def replace_draft(
    name: Name, wanted: MappingPushSchema, context: Shared, visitor: MappingWriter, shared: ForAll = False
) -> Response:
    """Create a draft, or replace it. 409 if the mapping is published: give the next version a name of its own."""
    return await _push(context, visitor, wanted, name, shared)


@router.delete("/{name}", status_code=204, response_class=Response, responses=refusals(404, 409))
async def delete_draft(name: Name, context: Shared, visitor: MappingWriter, shared: ForAll = False) -> Response:
    """Delete a draft with its samples."""
    await context.tenant_mappings.delete(_whose(visitor, shared), name)
    return Response(status_code=204)


_FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {
            "type": "string",
            "format": "binary",
            "description": "A document that the mapping reads.",
        },
        "name": {"type": "string", "description": "By default the file's name. A sample of this name is replaced."},
        "expected": {"type": "string", "description": "The data that must be read from it, as JSON."},
    },
}


@router.post(
    "/{name}/samples",
    dependencies=[Depends(heavy)],
    status_code=201,
    response_model=MappingSampleSchema,
    responses=refusals(400, 404, 408, 409, 413, 415, 429, 507),
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _FORM}}}},
)
async def add_sample(
    request: Request, name: Name, context: Shared, visitor: MappingWriter, shared: ForAll = False
) -> Response:
    """Add a document that the mapping is tested with, and the data that must be read from it."""
    await context.space.check()
    tenant = _whose(visitor, shared)
    begun_at = await context.mapping_samples.begin(tenant)
    form = await receive_sample(request, seconds=context.settings.api_upload_timeout)
    sample = await context.mapping_samples.add(tenant, name, form, begun_at=begun_at)
    return _json(sample_json(sample), 201)


@router.delete("/{name}/samples/{sample}", status_code=204, response_class=Response, responses=refusals(404, 409))
async def remove_sample(
    name: Name, sample: uuid.UUID, context: Shared, visitor: MappingWriter, shared: ForAll = False
) -> Response:
    """Remove a sample."""
    await context.mapping_samples.remove(_whose(visitor, shared), name, sample)
    return Response(status_code=204)


@router.post(
    "/{name}/test",
    dependencies=[Depends(heavy)],
    response_model=TestSchema,
    responses=refusals(404, 413, 429, 502, 503, 504, 507),
)
async def try_samples(
    request: Request, name: Name, context: Shared, visitor: MappingWriter, shared: ForAll = False
) -> Response:
    """Convert all samples, and say for each what differs from what was expected."""
    results = await while_connected(request, context.tenant_mappings.test(_whose(visitor, shared), name))
    passed = all(result.passed for result in results)
    return _json({"name": name, "passed": passed, "samples": results_json(results)})


@router.post(
    "/{name}/publish",
    dependencies=[Depends(heavy)],
    response_model=PublishedSchema,
    responses=refusals(400, 404, 409, 413, 429, 502, 503, 504, 507),
)
async def publish(
    request: Request, name: Name, context: Shared, visitor: MappingWriter, shared: ForAll = False
) -> Response:
    """Publish a draft: it can be chosen from now on, and never changes again. 409 while one of its samples fails."""
    tenant = _whose(visitor, shared)
    try:
        found, results = await while_connected(request, context.tenant_mappings.publish(tenant, name))
    except InvalidMapping as invalid:
        return _invalid(invalid)
    except SamplesFail as fail:
        return Problem(409, Code.CONFLICT, message_of(fail), more={"samples": results_json(fail.results)})
    return _json({**whole_json(found), "tested": results_json(results)})


@router.post("/{name}/retire", response_model=WholeMappingSchema, responses=refusals(404, 409))
async def retire(name: Name, context: Shared, visitor: MappingWriter, shared: ForAll = False) -> Response:
    """Hide a mapping from new uploads. Jobs that named it can still be retried and corrected."""
    return _json(whole_json(await context.tenant_mappings.retire(_whose(visitor, shared), name)))


async def _push(
    context: Shared, visitor: Visitor, wanted: MappingPushSchema, name: str | None, shared: bool
) -> Response:
    if not all(is_storable(text) for text in (wanted.document, *wanted.schemas, *wanted.schemas.values())):
        raise Refused(msg("convert.review.bad_characters"))
    tenant = _whose(visitor, shared)
    author = await author_of(context, visitor.principal)
    files = MappingFiles(wanted.document, wanted.schemas)
    try:
        found = await context.tenant_mappings.push(tenant, files, author=author, name=name)
    except InvalidMapping as invalid:
        return _invalid(invalid)
    status, place = (201 if name is None else 200), f"/api/mappings/{found.mapping.name}"
    return _json(whole_json(found), status, {"Location": place})


def _whose(visitor: Visitor, shared: bool) -> str:
    """The tenant whose mapping is meant."""
    if shared and not visitor.principal.may(ADMIN):
        raise Forbidden(msg("api_key.permission", permission=ADMIN))
    return SHARED if shared else visitor.principal.tenant


def _invalid(invalid: InvalidMapping) -> Response:
    return Problem(400, Code.BAD_MAPPING, message_of(invalid), more={"faults": invalid.faults})


def _json(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(pydantic_core.to_json(content), status, headers, "application/json")
