"""What is past its age goes, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from support.clock import Clock
from support.engine import purge
from support.janitor import DAY, Janitor, document, result_key, status, stored_keys
from waybill import retention
from waybill.changes import Subscriptions
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Conflict
from waybill.storage import LocalStorage, upload_key
from waybill_convert.retention import RETENTION
from waybill_convert.service import Conversions
from waybill_engine import State, control
from waybill_janitor.tasks.retention import Retention


@pytest.mark.parametrize("state", ["scheduled", "queued", "running"])
async def test_what_is_active_stays_however_old(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock, state: str
) -> None:
    job = await document(hot, storage, state, unpublished=True)
    await clock.forward(1000 * DAY)
    assert "documents" not in await cleaner.clean()
    assert await stored_keys(storage) == {upload_key(job), result_key(job, 9, "xml")}
    assert await hot.fetchval("SELECT count(*) FROM job_events") == 1


async def test_what_is_pinned_stays_until_it_is_not(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    job = await document(hot, storage, pinned=True, unpublished=True)
    await clock.forward(1000 * DAY)
    await cleaner.clean()
    assert await status(hot, job) == "complete"
    assert len(await stored_keys(storage)) == 4
    await hot.execute("UPDATE jobs SET pinned_at = NULL")
    await cleaner.clean()
    assert await stored_keys(storage) == set()
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 0


async def test_a_tenant_under_hold_loses_nothing_by_anybody(
    cleaner: Janitor, hot: Connection, db: Database, storage: LocalStorage, clock: Clock
) -> None:
    job, other = await document(hot, storage), await document(hot, storage, tenant="other")
    await retention.hold(hot, "acme", "case 12")
    await clock.forward(1000 * DAY)
    await cleaner.clean()
    assert await status(hot, job) == "complete"
    assert await status(hot, other) is None
    conversions = Conversions(db, storage, Subscriptions(db))
    with pytest.raises(Conflict, match="legal hold"):
        await conversions.delete("tenant:acme", job)
    assert await purge(hot, older_than=timedelta(days=1), states=[State.SUCCEEDED]) == 0
    assert len(await stored_keys(storage)) == 3
    assert await retention.release(hot, "acme")
    assert not await retention.release(hot, "acme")
    await cleaner.clean()
    assert await stored_keys(storage) == set()


async def test_a_tenant_may_have_limits_of_its_own(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    short, long, usual = [await document(hot, storage, tenant=name) for name in ("short", "long", "usual")]
    await retention.set_ages(hot, "short", {"documents": 1, "results": 2})
    await retention.set_ages(hot, "long", {"documents": 400, "results": 400})
    await clock.forward(3 * DAY)
    await cleaner.clean()
    assert [await status(hot, job) for job in (short, long, usual)] == ["expired", "complete", "complete"]
    assert upload_key(usual) in await stored_keys(storage)
    await clock.forward(50 * DAY)
    await cleaner.clean()
    assert [await status(hot, job) for job in (short, long, usual)] == ["expired", "complete", "expired"]
    assert upload_key(long) in await stored_keys(storage)
    assert await retention.set_ages(hot, "long", {"documents": None}) == {"results": 400}
    await cleaner.clean()
    assert upload_key(long) not in await stored_keys(storage)


async def test_a_job_that_is_retried_between_plan_and_doing_stays(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    job = await document(hot, storage, "failed")
    await clock.forward(8 * DAY)
    task = Retention(cleaner.tools, RETENTION.rules[:1])
    (batch,) = [one async for one in task.plan()]
    assert [due.job_id for due in batch.items] == [job]
    await control.retry(hot, job)
    assert not (await task.do(batch)).done["documents"]
    assert upload_key(job) in await stored_keys(storage)


async def test_where_the_database_is_slow_a_transaction_takes_fewer_jobs(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    for _ in range(5):
        await document(hot, storage)
    await clock.forward(8 * DAY)
    size = cleaner.tools.batch_size
    for _ in range(10):
        size.took(1.0)
    assert size.jobs == 20
    size.jobs = 2
    assert (await cleaner.clean())["documents"]["documents"] == 5
    for _ in range(10):
        size.took(0.01)
    assert size.jobs == 500
