"""Fixtures for tests of the API over real HTTP, on a real Postgres and a real folder. Several conftests import them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.api_server import Api, Converter, serving
from support.gateway import Gateway
from waybill.db import Database
from waybill.storage import LocalStorage

Serve = Callable[..., AbstractAsyncContextManager[Api]]


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway as it ships, for drawing pages."""
    gateway = Gateway(tmp_path_factory.mktemp("gateway"))
    yield gateway
    gateway.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "storage"


@pytest.fixture
def serve(database_url: str, db: Database, folder: Path) -> Serve:
    """Returns a function that starts an API with the given settings."""

    def start(storage: Any = None, **settings: Any) -> AbstractAsyncContextManager[Api]:
        unlimited = {
            "api_uploads_per_minute": 1000,
            "batch_uploads_per_minute": 1000,
            "api_address_uploads_per_minute": 0,
            "api_reads_per_minute": 0,
            "api_address_reads_per_minute": 0,
            "api_key_reads_per_minute": 0,
        }
        # Keeps the gateway and the secret of the person who runs the tests out of them.
        own = {"home": str(folder.parent / "home"), "gateway_url": "http://127.0.0.1:9"}
        given = {"database_url": database_url, "storage_min_free_mb": 0, **own, **unlimited, **settings}
        return serving(given, db, folder, storage)

    return start


@pytest.fixture
async def api(serve: Serve) -> AsyncIterator[Api]:
    async with serve() as running:
        yield running


@pytest.fixture
async def browser(api: Api) -> httpx.AsyncClient:
    return await api.browser()


@pytest.fixture
async def converter(db: Database, folder: Path) -> AsyncIterator[Converter]:
    async with db.hot() as connection:
        yield await Converter.start(connection, LocalStorage(folder))
