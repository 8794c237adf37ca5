"""What is on its way to somebody who is being erased does not outlive the erasure."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.engine import Connect, one_job
from support.patience import eventually
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Conflict
from waybill.storage import LocalStorage
from waybill_engine import arrivals, erasure
from waybill_engine.erasure import Eraser, JobPage

ME = ("acme", "tenant:acme")


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "storage")


async def test_an_erasure_begins_after_what_is_being_accepted_and_before_what_comes_next(
    connect: Connect, hot: Connection
) -> None:
    begun_at = await arrivals.begin(hot, *ME)
    accepting, requesting = await connect(), await connect()
    async with accepting.transaction():
        await arrivals.refuse_if_erased(accepting, *ME, begun_at)
        request = asyncio.create_task(erasure.request(requesting, "acme"))
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
        assert await eventually(lambda: hot.fetchval(waiting), what="the erasure waits")
        await erasure.request(hot, "other")  # nobody else waits
    await request
    with pytest.raises(Conflict, match="being erased"):
        async with accepting.transaction():
            await arrivals.refuse_if_erased(accepting, *ME, begun_at)
    with pytest.raises(Conflict, match="being erased"):
        await arrivals.begin(hot, *ME)


async def test_what_began_before_the_end_of_an_erasure_is_refused_and_what_begins_later_is_not(
    db: Database, hot: Connection, storage: LocalStorage
) -> None:
    begun_at = await arrivals.begin(hot, *ME)
    done = await erasure.erase(db, storage, [], await erasure.request(hot, "acme"), within=60)
    assert done.finished_at is not None
    with pytest.raises(Conflict):
        async with hot.transaction():
            await arrivals.refuse_if_erased(hot, *ME, begun_at)
    async with hot.transaction():
        await arrivals.refuse_if_erased(hot, "acme", "tenant:acme", await arrivals.begin(hot, *ME))
        await arrivals.refuse_if_erased(hot, "other", "tenant:other", begun_at)


async def test_a_job_that_a_schedule_made_at_the_last_moment_goes_too(
    db: Database, hot: Connection, storage: LocalStorage
) -> None:
    async def nothing(_connection: Connection, _owner: str, _cursor: str | None, _limit: int) -> JobPage:
        return JobPage([], None)

    async def removed(_connection: Connection, _jobs: Sequence[uuid.UUID]) -> int:
        return 0

    async def tick(connection: Connection, tenant: str, _limit: int) -> Sequence[uuid.UUID]:
        await one_job(connection, tenant=tenant)
        return []

    request = await erasure.request(hot, "acme")
    done = await erasure.erase(db, storage, [Eraser(nothing, removed, tick)], request, within=60)
    assert (done.finished_at is not None, done.jobs) == (True, 1)
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 0
