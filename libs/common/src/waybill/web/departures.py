"""Stops work for clients that have left. The server itself goes on with a request until somebody reads or writes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog
from fastapi import Request
from starlette.requests import ClientDisconnect

from waybill.http.request_place import route_of

T = TypeVar("T")

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do the work, or cancel it and raise ClientDisconnect once the client has hung up. Read the body before."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        log.debug("client_gone", route=route_of(request.scope))
        raise ClientDisconnect
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
