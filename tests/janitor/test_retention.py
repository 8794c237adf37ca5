"""What is past its time goes, and nothing else."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from support.clock import Clock
from support.engine import Connect, one_job, until_blocked
from support.janitor import DAY, Janitor, document, janitor, named_keys, page_key, status, stored_keys
from waybill import retention
from waybill.changes.subscriptions import Changes
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Conflict
from waybill.ids import new_id
from waybill.security import of_session
from waybill.storage import LocalStorage, upload_key
from waybill_convert.janitor_documents import Documents
from waybill_convert.models import Upload
from waybill_convert.service import Conversions
from waybill_engine import State, Unique, UniqueScope, control
from waybill_engine.artefacts import artefact_key


async def test_documents_go_after_a_week_results_after_a_month_jobs_after_three(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    job = await document(hot, storage)
    await clock.forward(6.9 * DAY)
    assert await cleaner.clean() == {}
    assert len(await stored_keys(storage)) == 3

    await clock.forward(0.2 * DAY)
    assert await cleaner.would() == {"documents": 1}
    done = await cleaner.clean()
    assert done == {"documents": {"documents": 1, "bytes": 4}, "garbage": {"objects": 1}}
    assert await status(hot, job) == "complete"
    assert upload_key(job) not in await stored_keys(storage)

    await clock.forward(23 * DAY)
    done = await cleaner.clean()
    assert done == {"results": {"results": 2, "bytes": 8, "expired": 1}, "garbage": {"objects": 2}}
    assert await status(hot, job) == "expired"
    assert await stored_keys(storage) == set()

    await clock.forward(60 * DAY)
    done = await cleaner.clean()
    assert done == {"events": {"events": 1}, "jobs": {"jobs": 1}}
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 0
    assert await hot.fetchval("SELECT count(*) FROM conversions WHERE deleted_at IS NOT NULL") == 1

    await clock.forward(8 * DAY)
    assert (await cleaner.clean())["tombstones"] == {"tombstones": 1}
    assert await hot.fetchval("SELECT count(*) FROM conversions") == 0


async def test_pictures_of_pages_go_with_their_document_and_revisions_with_the_result(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    job = await document(hot, storage, corrected=True)
    await clock.forward(2 * DAY)
    assert await cleaner.clean() == {}, "nobody's orphans"
    await clock.forward(5.1 * DAY)
    assert (await cleaner.clean())["garbage"] == {"objects": 2}
    assert {upload_key(job), page_key(job)}.isdisjoint(await stored_keys(storage))
    assert await stored_keys(storage) == await named_keys(hot)
    await clock.forward(23 * DAY)
    assert (await cleaner.clean())["results"] == {"results": 3, "bytes": 14, "expired": 1}
    assert await status(hot, job) == "expired"
    assert await stored_keys(storage) == set()


async def test_a_corrected_job_that_is_purged_leaves_nothing(
    cleaner: Janitor, hot: Connection, storage: LocalStorage
) -> None:
    job = await document(hot, storage, corrected=True)
    await hot.execute("DELETE FROM job_artefacts WHERE job_id = $1", job)
    await hot.execute("DELETE FROM jobs WHERE id = $1", job)
    await cleaner.clean()
    assert await stored_keys(storage) == set()


@pytest.mark.parametrize("state", ["scheduled", "queued", "running"])
async def test_what_is_active_stays_however_old(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock, state: str
) -> None:
    job = await document(hot, storage, state, unpublished=True)
    await clock.forward(1000 * DAY)
    assert "documents" not in await cleaner.clean()
    assert await stored_keys(storage) == {upload_key(job), artefact_key(job, 9, "xml")}
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
    conversions = Conversions(db, storage, Changes(db))
    with pytest.raises(Conflict, match="legal hold"):
        await conversions.delete("tenant:acme", job)
    assert await control.purge(hot, older_than=timedelta(days=1), states=[State.SUCCEEDED]) == 0
    assert len(await stored_keys(storage)) == 3
    assert await retention.release(hot, "acme")
    assert not await retention.release(hot, "acme")
    await cleaner.clean()
    assert await stored_keys(storage) == set()


async def test_once_a_hold_is_said_nothing_is_under_way_any_more(
    hot: Connection, connect: Connect, storage: LocalStorage
) -> None:
    removing, holding = await connect(), await connect()
    async with removing.transaction():
        await retention.let_holds_wait(removing)
        said = asyncio.create_task(retention.hold(holding, "acme"))
        await until_blocked(hot, holding)
        assert not said.done()
    await said
    with pytest.raises(Conflict):
        await retention.refuse_if_held(hot, "acme")


async def test_a_tenant_may_have_limits_of_its_own(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    short, long, usual = [await document(hot, storage, tenant=name) for name in ("short", "long", "usual")]
    await retention.keep(hot, "short", {"pdf_ttl_days": 1, "xml_ttl_days": 2})
    await retention.keep(hot, "long", {"pdf_ttl_days": 400, "xml_ttl_days": 400})
    await clock.forward(3 * DAY)
    await cleaner.clean()
    assert [await status(hot, job) for job in (short, long, usual)] == ["expired", "complete", "complete"]
    assert upload_key(usual) in await stored_keys(storage)
    await clock.forward(50 * DAY)
    await cleaner.clean()
    assert [await status(hot, job) for job in (short, long, usual)] == ["expired", "complete", "expired"]
    assert upload_key(long) in await stored_keys(storage)
    kept = await retention.keep(hot, "long", {"pdf_ttl_days": None})
    assert (kept.pdf_ttl_days, kept.xml_ttl_days) == (None, 400)
    await cleaner.clean()
    assert upload_key(long) not in await stored_keys(storage)


async def test_a_result_goes_once_downloaded_where_that_is_wanted(
    db: Database, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    conversions = Conversions(db, storage, Changes(db))
    taken, left, pinned = [await document(hot, storage, pinned=one) for one in (False, False, True)]
    await conversions.note_downloaded([taken, pinned])
    eager = janitor(db, storage, xml_on_download=True)
    await eager.clean()
    assert await status(hot, taken) == "complete", "a download that broke off can be repeated"
    await clock.forward(20 * 60)
    await janitor(db, storage).clean()
    assert await status(hot, taken) == "complete", "where nobody asked for it, it stays"
    assert (await eager.clean())["results"]["expired"] == 1
    assert [await status(hot, job) for job in (taken, left, pinned)] == ["expired", "complete", "complete"]


async def test_uploaded_again_it_is_young_again(
    db: Database, cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    job = await document(hot, storage)
    await clock.forward(29 * DAY)
    await hot.execute("UPDATE conversions SET listed_at = now() WHERE job_id = $1", job)
    await clock.forward(6 * DAY)
    await cleaner.clean()
    assert await named_keys(hot) == await stored_keys(storage)
    assert len(await stored_keys(storage)) == 3


async def test_an_upload_is_never_answered_with_a_result_that_expires_meanwhile(
    db: Database, cleaner: Janitor, hot: Connection, connect: Connect, storage: LocalStorage, clock: Clock
) -> None:
    me = of_session(new_id())
    old = await document(hot, storage, tenant=me.tenant, owner=me.owner)
    await clock.forward(40 * DAY)
    conversions = Conversions(db, storage, Changes(db))
    again = new_id()
    await storage.put(upload_key(again), b"%PDF")
    upload = Upload(again, upload_key(again), "a.pdf", 4, old.hex, "pt_simon_invoice_v1")
    janitors = await connect()
    async with janitors.transaction():
        # As the janitor does it: the job is locked, its result removed, and the commit is still to come.
        await janitors.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", old)
        await janitors.execute("DELETE FROM job_artefacts WHERE job_id = $1", old)
        await janitors.execute("UPDATE conversions SET status = 'expired' WHERE job_id = $1", old)
        uploading = asyncio.create_task(conversions.upload(me, upload))
        async with asyncio.timeout(20):
            while not await hot.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                await asyncio.sleep(0.01)
    answer = await uploading
    assert (answer.job.id, answer.deduped_from) == (again, None)


async def test_a_job_that_is_retried_between_plan_and_doing_stays(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    job = await document(hot, storage, "failed")
    await clock.forward(8 * DAY)
    task = Documents(cleaner.tools)
    (batch,) = [one async for one in task.plan()]
    assert list(batch.items) == [job]
    await control.retry(hot, job)
    assert not (await task.do(batch)).done["documents"]
    assert upload_key(job) in await stored_keys(storage)


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
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 1
    assert len(await stored_keys(storage)) == 2


async def test_where_the_database_is_slow_a_transaction_takes_fewer_jobs(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    for _ in range(5):
        await document(hot, storage)
    await clock.forward(8 * DAY)
    portion = cleaner.tools.portion
    for _ in range(10):
        portion.took(1.0)
    assert portion.size == 20
    portion.size = 2
    assert (await cleaner.clean())["documents"]["documents"] == 5
    for _ in range(10):
        portion.took(0.01)
    assert portion.size == 500
