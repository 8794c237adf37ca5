"""Runs the product with its defaults: the API and, if a measurement needs them, a gateway and a worker."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from benchmarks.services import Service, free_port, running
from waybill.db.database import Connection
from waybill.security import ADMIN, keys


@dataclass(frozen=True)
class Product:
    url: str
    """The URL of the database."""
    api: Service
    gateway: Service | None = None
    worker: Service | None = None


@contextlib.asynccontextmanager
async def product(url: str, home: Path, *, converting: bool = False) -> AsyncIterator[Product]:
    """Run the API on this database; with `converting` also a gateway and a worker."""
    api, gateway = free_port(), free_port()
    settings = {
        "WAYBILL_DATABASE_URL": url,
        "WAYBILL_API_PORT": str(api),
        "WAYBILL_GATEWAY_PORT": str(gateway),
        "WAYBILL_GATEWAY_URL": f"http://127.0.0.1:{gateway}",
        "WAYBILL_GATEWAY_SECRET": secrets.token_hex(32),
        "WAYBILL_LOG_FORMAT": "json",
        # The benchmark measures speed, not limits.
        "WAYBILL_API_KEY_UPLOADS_PER_MINUTE": "100000",
        "WAYBILL_API_KEY_READS_PER_MINUTE": "0",
        "WAYBILL_BATCH_UPLOADS_PER_MINUTE": "100000",
    }
    async with contextlib.AsyncExitStack() as stack:
        converter = worker = None
        if converting:
            converter = await stack.enter_async_context(running("waybill_gateway", home, gateway, settings))
            worker = await stack.enter_async_context(running("waybill_worker", home, None, settings))
        served = await stack.enter_async_context(running("waybill_api", home, api, settings))
        yield Product(url, served, converter, worker)


async def key(connection: Connection, tenant: str) -> dict[str, str]:
    """The headers that a program of this tenant sends with each request."""
    made = await keys.create(connection, tenant=tenant, name="bench", permissions=[ADMIN])
    return {"Authorization": f"Bearer {made.text}"}


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    connection: Connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()
