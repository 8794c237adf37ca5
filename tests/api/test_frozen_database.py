"""Postgres is there and says nothing: every request is answered all the same, and soon."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.api_server import Api, Converter, serving, upload, uploaded
from support.patience import eventually
from support.server import embedded, frozen
from waybill.config import CommonSettings
from waybill.db import Database
from waybill.db.migrations import upgrade
from waybill.storage import LocalStorage
from waybill_cli.local.postgres import EmbeddedPostgres


async def status(asking: asyncio.Future[httpx.Response]) -> int:
    async with asyncio.timeout(25):
        return (await asking).status_code


async def test_while_postgres_is_frozen_everything_is_answered_and_then_all_is_well(tmp_path: Path) -> None:
    with embedded() as server:
        await upgrade(server.url)
        settings: dict[str, Any] = {"database_url": server.url, "storage_min_free_mb": 0}
        db = await Database.connect(CommonSettings.model_validate(settings), patience=1)
        try:
            async with serving(settings, db, tmp_path) as api:
                await _meet_a_frozen_server(api, db, tmp_path, server)
        finally:
            await db.close()


async def _meet_a_frozen_server(api: Api, db: Database, folder: Path, server: EmbeddedPostgres) -> None:
    browser, key = await api.browser(), await api.key()
    done, waiting = await uploaded(browser), await uploaded(browser)
    async with db.hot() as connection:
        converter = await Converter.start(connection, LocalStorage(folder))
        for lease in await converter.take():
            if str(lease.id) == done:
                await converter.finish(lease)
    leaving = await api.browser()
    requests: dict[str, Callable[[], Awaitable[httpx.Response]]] = {
        "ready": lambda: browser.get("/readyz"),
        "health": lambda: browser.get("/api/healthz"),
        "list": lambda: browser.get("/api/jobs?limit=7"),
        "changes": lambda: browser.get("/api/jobs?since=2020-01-01"),
        "page": lambda: browser.get("/queue?limit=9"),
        "one": lambda: browser.get(f"/api/jobs/{done}"),
        "events": lambda: browser.get(f"/api/jobs/{done}/events"),
        "explain": lambda: browser.get(f"/api/jobs/{waiting}/explain"),
        "download": lambda: browser.get(f"/api/jobs/{done}/download"),
        "archive": lambda: browser.get("/api/jobs/download"),
        "cancel": lambda: browser.post(f"/api/jobs/{waiting}/cancel"),
        "delete": lambda: browser.delete(f"/api/jobs/{done}"),
        "upload": lambda: upload(browser),
        "program": lambda: api.client(key).get("/api/jobs"),
        "sign in": lambda: browser.post("/session", json={"key": key}),
        "sample": lambda: browser.post("/sample"),
    }
    with frozen(server):
        asked = {name: asyncio.ensure_future(request()) for name, request in requests.items()}
        asked["sign out"] = asyncio.ensure_future(leaving.post("/session/end"))
        asked["alive"] = asyncio.ensure_future(browser.get("/livez"))
        answers = {name: await status(asking) for name, asking in asked.items()}
    assert answers == dict.fromkeys(requests, 503) | {"sign out": 204, "alive": 200}

    async def ready() -> bool:
        return (await browser.get("/readyz")).status_code == 200

    await eventually(ready)
    await api.listening()
    # Every place in the pool is free again.
    again = await asyncio.gather(*(browser.get(f"/api/jobs?limit={number}") for number in range(1, 30)))
    assert {answer.status_code for answer in again} == {200}


async def test_who_is_cancelled_in_the_midst_of_a_statement_leaves_the_pool_whole() -> None:
    with embedded() as server:
        settings: dict[str, Any] = {"database_url": server.url}
        db = await Database.connect(CommonSettings.model_validate(settings), schema=False)
        try:
            with frozen(server):
                for _ in range(30):  # more often than there are connections
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.01), db.hot() as connection:
                            await connection.fetchval("SELECT 1")
            name = uuid.uuid4().hex
            for _ in range(30):
                async with db.hot() as connection:
                    assert await connection.fetchval("SELECT $1::text", name) == name
        finally:
            await db.close()
