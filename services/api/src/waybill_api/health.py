"""Is it alive, is it ready? Asked by Kubernetes' probes, by load balancers and by people."""

from __future__ import annotations

import asyncio

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from waybill.db import Database, SchemaMismatch
from waybill.errors import Code
from waybill.http import Problem

log = structlog.get_logger()
router = APIRouter()

_PATIENCE = 3.0
"""Seconds; below the timeouts that probes usually have, so that they get an answer and not silence."""

_UNREACHABLE = "The database cannot be reached."


@router.get("/livez")
async def livez() -> dict[str, str]:
    """The process runs and answers. The database's troubles are no reason to restart it."""
    return {"status": "alive"}


@router.get("/readyz")
async def readyz(request: Request) -> Response:
    """Whether requests should be sent here: the database answers, and its schema is the one we know."""
    if trouble := await find_trouble(request.app.state.database):
        return trouble
    return JSONResponse({"status": "ready"})


@router.get("/api/healthz")
async def healthz(request: Request) -> Response:
    """The same for people and monitors, with the version they look at."""
    if trouble := await find_trouble(request.app.state.database):
        return trouble
    return JSONResponse({"status": "ok", "version": request.app.version, "checks": {"database": "ok", "schema": "ok"}})


async def find_trouble(database: Database) -> Problem | None:
    """What keeps us from serving requests, as a 503; None when nothing does."""
    try:
        async with asyncio.timeout(_PATIENCE):
            await database.check()
            await database.check_schema()
    except SchemaMismatch as mismatch:
        return Problem(503, Code.NOT_READY, mismatch.message)
    except Exception as error:  # noqa: BLE001 - whatever the driver calls it, the answer is "not ready"
        log.warning("not_ready", error=str(error) or type(error).__name__)
        return Problem(503, Code.DB_UNAVAILABLE, _UNREACHABLE, {"Retry-After": "1"})
    return None
