"""How long the convert pipeline keeps documents, results and durations, as the janitor applies it."""

from __future__ import annotations

import asyncio

import pytest

from convert.conftest import uploads_of
from support.clock import Clock
from support.engine import Connect
from support.janitor import DAY, Janitor, document, janitor, named_keys, page_key, status, stored_keys
from waybill.changes import Subscriptions
from waybill.db import Database
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill.security import of_session
from waybill.storage import LocalStorage, upload_key
from waybill_convert.download_service import Downloads
from waybill_convert.estimates import Estimates, Noted
from waybill_convert.models import Upload
from waybill_convert.service import Conversions


@pytest.fixture
def cleaner(db: Database, storage: LocalStorage) -> Janitor:
    # What the shelf does to conversions is in tests/janitor/tasks/test_shelf.py.
    return janitor(db, storage, shelve_after="never")


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


async def test_a_result_goes_once_downloaded_where_that_is_wanted(
    db: Database, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    taken, left, pinned = [await document(hot, storage, pinned=one) for one in (False, False, True)]
    await Downloads(db).note_downloaded([taken, pinned])
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
    conversions = Conversions(db, storage, Subscriptions(db))
    again = new_id()
    await storage.put(upload_key(again), b"%PDF")
    upload = Upload(again, upload_key(again), "a.pdf", 4, old.hex, "pt_simon_invoice_v1")
    janitors = await connect()
    async with janitors.transaction():
        # As the janitor does it: the job is locked, its result removed, and the commit is still to come.
        await janitors.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", old)
        await janitors.execute("DELETE FROM job_artefacts WHERE job_id = $1", old)
        await janitors.execute("UPDATE conversions SET status = 'expired' WHERE job_id = $1", old)
        uploading = asyncio.create_task(uploads_of(conversions).upload(me, upload))
        async with asyncio.timeout(20):
            while not await hot.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                await asyncio.sleep(0.01)
    answer = await uploading
    assert (answer.job.id, answer.deduped_from) == (again, None)


async def test_durations_are_noted_and_serve_when_the_jobs_are_gone(
    cleaner: Janitor, db: Database, hot: Connection, storage: LocalStorage
) -> None:
    for seconds in (10, 11, 12, 13, 14, 15):
        job = await document(hot, storage)
        await hot.execute("UPDATE conversions SET bytes = 100000 WHERE job_id = $1", job)
        await hot.execute(
            "UPDATE jobs SET finished_at = started_at + $2 * interval '1 second' WHERE id = $1", job, seconds
        )
    await cleaner.clean()
    noted = await hot.fetchrow("SELECT * FROM durations")
    assert noted is not None
    assert (noted["kind"], noted["size"], noted["samples"]) == ("convert_pdf", 16, 6)
    assert (noted["low"], noted["median"], noted["high"]) == (11.25, 12.5, 13.75)
    assert Estimates((), {16: Noted(6, 11.25, 12.5, 13.75)}).remaining(100_000, 2.5) == 10
    assert Estimates((), {16: Noted(2, 11.25, 12.5, 13.75)}).remaining(100_000, 2.5) is None
    await hot.execute("TRUNCATE jobs, conversions, job_artefacts, job_events")
    await hot.execute("UPDATE durations SET samples = 60")
    running = await document(hot, storage, "running")
    await hot.execute("UPDATE conversions SET bytes = 90000 WHERE job_id = $1", running)
    conversions = Conversions(db, storage, Subscriptions(db))
    assert (await conversions.get("tenant:acme", running)).remaining_seconds in range(5, 14)
