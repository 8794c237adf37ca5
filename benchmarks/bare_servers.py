"""Servers that the API is compared with: a Starlette app that drops what it reads, and a FastAPI app with one query.

Both run on the API's own server with its settings, and the query uses the API's own kind of pool. So they differ from
the API in what they do, not in how they run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from waybill.config import DatabaseUrl
from waybill.db import Database
from waybill_api.server import configured


async def _read(request: Request) -> Response:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
    return PlainTextResponse(str(size), 201)


async def _ready(_: Request) -> Response:
    return PlainTextResponse("ready")


def sink() -> Starlette:
    return Starlette(routes=[Route("/", _read, methods=["POST"]), Route("/readyz", _ready)])


def one_query() -> FastAPI:
    database = Database(DatabaseUrl(os.environ["WAYBILL_DATABASE_URL"]), name="bench")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await database.close()

    app = FastAPI(lifespan=lifespan)

    @app.get("/one")
    async def one() -> dict[str, int]:
        async with database.hot() as connection:
            return {"one": await connection.fetchval("SELECT 1")}

    @app.get("/readyz")
    async def readyz() -> dict[str, str]:
        return {"status": "ready"}

    return app


if __name__ == "__main__":
    app = sink() if os.environ["BENCH_APP"] == "sink" else one_query()
    config = configured(app, host="127.0.0.1", port=int(os.environ["BENCH_PORT"]))  # type: ignore[arg-type]
    asyncio.run(uvicorn.Server(config).serve())
