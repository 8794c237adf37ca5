"""The engine on real Postgres: its functions are called directly, and `worker/` starts real worker processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.engine import Connect
from support.handlers import EFFECTS
from support.workers import StartWorker, worker_starter
from waybill.db import Database
from waybill.db.database import Connection


@pytest.fixture
async def hot(db: Database) -> AsyncIterator[Connection]:
    """A connection as the engine's own statements use it."""
    async with db.hot() as connection:
        yield connection


@pytest.fixture
async def connection(connect: Connect) -> Connection:
    """A connection to a database that has the table in which the effects of `support.handlers` show."""
    connection = await connect()
    await connection.execute(EFFECTS)
    return connection


@pytest.fixture
def start_worker(database_url: str, tmp_path: Path) -> Iterator[StartWorker]:
    """Starts `python -m waybill_engine.worker` against the test's database."""
    with worker_starter(database_url, tmp_path) as start:
        yield start


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A folder where gated handlers announce themselves and wait for a file called `open`."""
    folder = tmp_path / "gate"
    folder.mkdir()
    return folder
