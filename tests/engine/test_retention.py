"""Which ended jobs stay listed, whatever their age."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clock import Clock
from support.engine import one_job
from support.janitor import DAY, Janitor, document, janitor, status, stored_keys
from waybill.db import Database
from waybill.db.database import Connection
from waybill.storage import LocalStorage
from waybill_engine import Unique, UniqueScope, control


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "storage")


@pytest.fixture
def cleaner(db: Database, storage: LocalStorage) -> Janitor:
    return janitor(db, storage)


async def test_a_unique_key_for_ever_keeps_its_job(cleaner: Janitor, hot: Connection, clock: Clock) -> None:
    keys = [None, Unique("a", UniqueScope.FOREVER), Unique("b", UniqueScope.WINDOW, window=3600.0)]
    jobs = [await one_job(hot, unique=key) for key in keys]
    for job in jobs:
        await control.cancel(hot, job)
    await clock.forward(100 * DAY)
    await cleaner.clean()
    assert [row["id"] for row in await hot.fetch("SELECT id FROM jobs")] == [jobs[1]]


async def test_children_stay_as_long_as_their_parent_is_active(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    parent, child = await document(hot, storage, "queued"), await document(hot, storage)
    await hot.execute("UPDATE jobs SET parent_id = $1 WHERE id = $2", parent, child)
    await clock.forward(100 * DAY)
    await cleaner.clean()
    assert await status(hot, child) == "complete"
    assert len(await stored_keys(storage)) == 4


async def test_artefacts_of_other_pipelines_are_theirs_and_so_is_the_job(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    job = await document(hot, storage)
    await hot.execute("DELETE FROM conversions WHERE job_id = $1", job)
    await hot.execute("UPDATE jobs SET kind = 'sign_passport' WHERE id = $1", job)
    await clock.forward(1000 * DAY)
    await cleaner.clean()
    assert await hot.fetchval("SELECT count(*) FROM all_jobs") == 1
    assert len(await stored_keys(storage)) == 2
