"""Health checks for Kubernetes, load balancers and people."""

from __future__ import annotations

import asyncio

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from waybill.db import SchemaMismatch
from waybill.errors import Code, WaybillError
from waybill.http import Problem
from waybill.messages import msg
from waybill.web.context import Context
from waybill.web.visitors import Shared

log = structlog.get_logger()
router = APIRouter(include_in_schema=False)

_PATIENCE = 3.0
"""Seconds. This is shorter than the usual timeout of probes, so that they get an answer."""


@router.get("/livez")
async def livez() -> dict[str, str]:
    """Whether the process answers. A database outage is no reason to restart it."""
    return {"status": "alive"}


@router.get("/readyz")
async def readyz(context: Shared) -> Response:
    """Whether to send requests here: the database writes, we can run on its schema, files can be stored.

    A nearly full disk and settings that do not fit together are reported, but the service stays ready: results can
    still be downloaded.
    """
    if trouble := await find_trouble(context):
        return trouble
    low, wrong = await is_low(context), await misconfigured(context)
    return JSONResponse(
        {"status": "ready"} | ({"storage": low} if low else {}) | ({"misconfigured": wrong} if wrong else {})
    )


@router.get("/api/healthz")
async def healthz(request: Request, context: Shared) -> Response:
    """The same for people and monitoring, with our version."""
    if trouble := await find_trouble(context):
        return trouble
    checks = {"database": "ok", "schema": "ok", "storage": await is_low(context) or "ok"}
    if wrong := await misconfigured(context):
        checks["settings"] = " ".join(wrong)
    return JSONResponse({"status": "ok", "version": request.app.version, "checks": checks})


async def find_trouble(context: Context) -> Problem | None:
    """Why we cannot serve requests, as a 503; None if we can."""
    try:
        async with asyncio.timeout(_PATIENCE):
            await context.database.check_writable()
            await context.database.check_schema()
    except SchemaMismatch as mismatch:
        return Problem(503, Code.NOT_READY, mismatch.message)
    except Exception as error:  # noqa: BLE001 - whatever the driver calls it, the answer is "not ready"
        log.warning("not_ready", error=str(error) or type(error).__name__)
        return Problem(503, Code.DB_UNAVAILABLE, headers={"Retry-After": "1"})
    try:
        async with asyncio.timeout(_PATIENCE):
            await context.storage.check()
    except Exception as error:  # noqa: BLE001 - the same for storage
        log.warning("not_ready", storage=str(error) or type(error).__name__)
        return Problem(503, Code.IO_ERROR, msg("storage.unavailable"), {"Retry-After": "5"})
    return None


async def is_low(context: Context) -> str | None:
    """Why uploads are refused, if the storage is nearly full."""
    try:
        await context.space.check()
    except WaybillError as full:
        return full.message
    return None


async def misconfigured(context: Context) -> list[str]:
    """What a person has to mend in the settings, as far as the pipelines can tell."""
    found = [await part.check(context) for part in context.parts if part.check is not None]
    return [sentence for sentence in found if sentence]
