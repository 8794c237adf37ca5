"""The engine's functions are called directly here, on real Postgres, without a worker process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from waybill.db import Database
from waybill.db.database import Connection


@pytest.fixture
async def hot(db: Database) -> AsyncIterator[Connection]:
    """A connection as the engine's own statements use it."""
    async with db.hot() as connection:
        yield connection
