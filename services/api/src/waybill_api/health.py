"""Is it alive, is it ready? Asked by Kubernetes' probes, by load balancers and by people."""

from __future__ import annotations

import asyncio

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from waybill.db import SchemaMismatch
from waybill.errors import Code, WaybillError
from waybill.http import Problem
from waybill.web.context import Context
from waybill.web.visitors import Shared

log = structlog.get_logger()
router = APIRouter(include_in_schema=False)

_PATIENCE = 3.0
"""Seconds; below the timeouts that probes usually have, so that they get an answer and not silence."""

_UNREACHABLE = "The database cannot be reached."


@router.get("/livez")
async def livez() -> dict[str, str]:
    """The process runs and answers. The database's troubles are no reason to restart it."""
    return {"status": "alive"}


@router.get("/readyz")
async def readyz(context: Shared) -> Response:
    """Whether requests should be sent here: the database answers, its schema is the one we know, files can be stored.

    A disk that is nearly full is said, but is no reason to send nobody: results can still be fetched.
    """
    if trouble := await find_trouble(context):
        return trouble
    low = await is_low(context)
    return JSONResponse({"status": "ready"} | ({"storage": low} if low else {}))


@router.get("/api/healthz")
async def healthz(request: Request, context: Shared) -> Response:
    """The same for people and monitors, with the version they look at."""
    if trouble := await find_trouble(context):
        return trouble
    checks = {"database": "ok", "schema": "ok", "storage": await is_low(context) or "ok"}
    return JSONResponse({"status": "ok", "version": request.app.version, "checks": checks})


async def find_trouble(context: Context) -> Problem | None:
    """What keeps us from serving requests, as a 503; None when nothing does."""
    try:
        async with asyncio.timeout(_PATIENCE):
            await context.database.check()
            await context.database.check_schema()
    except SchemaMismatch as mismatch:
        return Problem(503, Code.NOT_READY, mismatch.message)
    except Exception as error:  # noqa: BLE001 - whatever the driver calls it, the answer is "not ready"
        log.warning("not_ready", error=str(error) or type(error).__name__)
        return Problem(503, Code.DB_UNAVAILABLE, _UNREACHABLE, {"Retry-After": "1"})
    try:
        async with asyncio.timeout(_PATIENCE):
            await context.storage.check()
    except Exception as error:  # noqa: BLE001 - the same for storage
        log.warning("not_ready", storage=str(error) or type(error).__name__)
        return Problem(503, Code.IO_ERROR, "Documents cannot be stored at the moment.", {"Retry-After": "5"})
    return None


async def is_low(context: Context) -> str | None:
    """What to say when uploads are turned away for want of room."""
    try:
        await context.space.check()
    except WaybillError as full:
        return full.message
    return None
