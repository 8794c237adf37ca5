"""`python -m waybill_worker`, as it ships: with the handlers of every installed pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.engine import Connect
from support.workers import StartWorker, worker_starter
from waybill.db.database import Connection


@pytest.fixture
async def connection(connect: Connect) -> Connection:
    return await connect()


@pytest.fixture
def start_worker(database_url: str, tmp_path: Path) -> Iterator[StartWorker]:
    with worker_starter(database_url, tmp_path, program="waybill_worker") as start:
        yield start
