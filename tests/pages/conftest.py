"""The API on a database of its own, and a browser without scripts in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from support.serving import Api, serving
from waybill.config import ApiSettings
from waybill.db import Database


@pytest.fixture
async def api(db: Database, database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    settings = ApiSettings.model_validate({"database_url": database_url, "home": tmp_path})
    async with serving(settings, db, tmp_path) as running:
        yield running


@pytest.fixture
async def client(api: Api) -> httpx.AsyncClient:
    return await api.browser()
