"""The janitor on a real database and a real folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.engine import Connect
from support.janitor import Janitor, janitor
from waybill.db import Database
from waybill.db.database import Connection
from waybill.storage import LocalStorage


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "storage")


@pytest.fixture
def cleaner(db: Database, storage: LocalStorage) -> Janitor:
    return janitor(db, storage)


@pytest.fixture
async def hot(connect: Connect) -> Connection:
    return await connect()
