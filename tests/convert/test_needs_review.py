"""A result that is in doubt waits for a person: nobody gets it before, and it is not forgotten meanwhile."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from convert.conftest import put
from support.api_server import Converter, pdf
from support.clock import Clock
from support.engine import failure
from support.janitor import DAY, Janitor, janitor, status
from support.reviewed_invoices import broken, doubtful, end, good, review_desk
from support.sick_gateway import answering, sick_gateway
from support.workers import StartWorker, the_end, worker_starter
from waybill.changes import Subscriptions
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Conflict, NotFound, NotReady, Refused
from waybill.ids import new_id
from waybill.security import Principal, of_session, of_tenant
from waybill.storage import LocalStorage, upload_key
from waybill_convert.clients.page_renderer import GatewayRenderer
from waybill_convert.download_service import Downloads
from waybill_convert.erasure import ERASER
from waybill_convert.kinds import CONVERT_PDF, XML
from waybill_convert.repository import thresholds
from waybill_convert.review_service import Reviews
from waybill_convert.revision_models import Outdated
from waybill_convert.service import Conversions
from waybill_convert.status import Status
from waybill_engine import NewJob, control, enqueue, shelf
from waybill_engine import erasure as engine_erasure


@pytest.fixture
async def reviews(db: Database, storage: LocalStorage) -> AsyncIterator[Reviews]:
    async with review_desk(storage) as desk:
        yield Reviews(db, storage, Subscriptions(db), desk, GatewayRenderer("http://127.0.0.1:1", storage))


@pytest.fixture
async def waiting(conversions: Conversions, converter: Converter, me: Principal) -> uuid.UUID:
    """A conversion with two values in doubt."""
    job = (await put(conversions, me, doubtful().pdf)).job.id
    await end(converter, doubtful())
    return job


@pytest.fixture
def cleaner(db: Database, storage: LocalStorage) -> Janitor:
    return janitor(db, storage)


@pytest.fixture
def start_worker(database_url: str, tmp_path: Path) -> Iterator[StartWorker]:
    with worker_starter(database_url, tmp_path, program="waybill_worker") as start:
        yield start


async def test_nobody_gets_it_before_a_person_has_looked(
    conversions: Conversions, downloads: Downloads, reviews: Reviews, me: Principal, waiting: uuid.UUID
) -> None:
    listed = await conversions.listing(me.owner)
    (found,) = listed.jobs
    assert (found.status, found.error, found.dead_letter) == (Status.NEEDS_REVIEW, None, False)
    assert found.review is not None
    assert (found.review.below, found.review.count, found.review.values) == (60, 2, ["number", "lines[1].name"])
    assert (listed.active_count, listed.counts[Status.NEEDS_REVIEW], listed.counts[Status.COMPLETE]) == (0, 1, 0)
    assert [one.id for one in (await conversions.listing(me.owner, statuses=[Status.NEEDS_REVIEW])).jobs] == [waiting]
    assert [one.id for one in (await conversions.changes_since(me.owner, listed.since)).jobs] in ([], [waiting])
    assert (await conversions.explain(me.owner, waiting)).says.key == "convert.waits_for_review"

    for asked in (
        downloads.result(me.owner, waiting),
        downloads.results(me.owner, [waiting]),
        reviews.file(me.owner, waiting, 0, XML),
        anext(aiter(downloads.every_result(me.owner))),
    ):
        with pytest.raises(NotReady) as refused:
            await asked
        assert refused.value.detail is not None
        assert refused.value.detail["review"] in (f"/review/{waiting}", "/queue?status=needs_review")
    assert (await reviews.file(me.owner, waiting)).bytes == len(doubtful().record), "what was read can be looked at"
    assert (await downloads.provenance(me.owner, waiting)).bytes == len(doubtful().record)


async def test_approved_it_is_complete_and_approving_it_again_changes_nothing(
    conversions: Conversions, downloads: Downloads, reviews: Reviews, me: Principal, waiting: uuid.UUID, hot: Connection
) -> None:
    await asyncio.gather(*(reviews.approve(me.owner, waiting, 0, author=f"key:{name}") for name in "abc"))
    await reviews.approve(me.owner, waiting, 0, author="key:late")
    found = await conversions.get(me.owner, waiting)
    assert (found.status, found.revision) == (Status.COMPLETE, 0)
    assert found.review is not None
    assert found.review.approved_by in ("key:a", "key:b", "key:c")
    assert (await downloads.result(me.owner, waiting)).bytes == len(good().xml or b"")
    assert [each.job_id async for each in downloads.every_result(me.owner)] == [waiting]
    said = await hot.fetch("SELECT action, detail FROM audit_events WHERE subject = $1", f"job:{waiting}")
    assert [(row["action"], json.loads(row["detail"])) for row in said] == [("job.approved", {"revision": 0})]
    assert [one.event for one in await conversions.events(me.owner, waiting)].count("approved") == 1


async def test_saving_a_correction_approves_it(
    conversions: Conversions, downloads: Downloads, reviews: Reviews, me: Principal, waiting: uuid.UUID
) -> None:
    await reviews.save(me.owner, waiting, 0, [("number", "2508070099")], author="session")
    found = await conversions.get(me.owner, waiting)
    assert (found.status, found.revision) == (Status.COMPLETE, 1)
    assert found.review is not None
    assert found.review.approved_by == "session"
    assert (await downloads.result(me.owner, waiting)).bytes > 0
    assert (await reviews.file(me.owner, waiting, 0, XML)).bytes > 0, "what was read is no secret any more"
    with pytest.raises(Outdated) as outdated:
        await reviews.approve(me.owner, waiting, 0, author="session")
    assert outdated.value.latest.number == 1
    await reviews.approve(me.owner, waiting, 1, author="session")


async def test_what_cannot_be_approved_says_why(
    conversions: Conversions, reviews: Reviews, me: Principal, waiting: uuid.UUID, converter: Converter
) -> None:
    with pytest.raises(NotFound):
        await reviews.approve(of_session(new_id()).owner, waiting, 0, author="session")
    with pytest.raises(Refused, match="no revision 1"):
        await reviews.approve(me.owner, waiting, 1, author="session")
    assert (await conversions.get(me.owner, waiting)).status is Status.NEEDS_REVIEW
    queued = (await put(conversions, me)).job.id
    with pytest.raises(NotReady):
        await reviews.approve(me.owner, queued, 0, author="session")
    await conversions.cancel(me.owner, queued)
    failed = (await put(conversions, me, broken().pdf)).job.id
    await end(converter, broken())
    with pytest.raises(Conflict, match="Only a result that needs a look"):
        await reviews.approve(me.owner, failed, 0, author="session")


async def test_the_same_upload_again_is_the_same_job(
    conversions: Conversions, me: Principal, waiting: uuid.UUID, converter: Converter, downloads: Downloads
) -> None:
    again = await put(conversions, me, doubtful().pdf)
    assert (again.deduped_from, again.job.status) == (waiting, Status.NEEDS_REVIEW)
    with pytest.raises(NotReady):
        await downloads.result(me.owner, waiting)


async def test_a_later_one_that_waits_makes_retrying_an_earlier_one_needless(
    conversions: Conversions, me: Principal, converter: Converter
) -> None:
    first = (await put(conversions, me, doubtful().pdf)).job.id
    (claimed,) = await converter.take()
    await converter.fail(claimed, failure(retryable=False))
    second = (await put(conversions, me, doubtful().pdf)).job.id
    await end(converter, doubtful())
    with pytest.raises(Conflict) as refused:
        await conversions.retry(me.owner, first)
    assert refused.value.detail == {"job_id": str(second)}


async def test_on_the_shelf_it_can_still_be_approved(
    reviews: Reviews,
    me: Principal,
    waiting: uuid.UUID,
    hot: Connection,
    conversions: Conversions,
    clock: Clock,
) -> None:
    await clock.forward(DAY)
    async with hot.transaction():
        assert await shelf.shelve(hot, [waiting], 0) == 1
    assert (await conversions.get(me.owner, waiting)).status is Status.NEEDS_REVIEW
    await reviews.approve(me.owner, waiting, 0, author="session")
    assert (await conversions.get(me.owner, waiting)).status is Status.COMPLETE


async def test_a_correction_of_a_failed_document_is_complete_whatever_another_run_doubts(
    conversions: Conversions, reviews: Reviews, me: Principal, converter: Converter, hot: Connection
) -> None:
    job = (await put(conversions, me, broken().pdf)).job.id
    await end(converter, broken())
    await reviews.save(me.owner, job, 0, [("subtotal", "6.608.687,80")], author="session")
    await control.retry(hot, job)
    (claimed,) = await converter.take()
    await converter.finish(claimed, good().xml or b"", doubtful().record, doubtful().doubts)
    assert (await conversions.get(me.owner, job)).status is Status.COMPLETE


async def test_it_expires_like_any_result_and_its_document_stays_as_long(
    conversions: Conversions,
    me: Principal,
    waiting: uuid.UUID,
    clock: Clock,
    cleaner: Janitor,
    hot: Connection,
    storage: LocalStorage,
) -> None:
    await clock.forward(29 * DAY)
    await cleaner.clean()
    assert await status(hot, waiting) == "needs_review"
    assert await storage.exists(upload_key(waiting)), "without the document nobody can look"
    await clock.forward(2 * DAY)
    await cleaner.clean()
    assert await status(hot, waiting) == "expired"
    await cleaner.clean()
    assert not await storage.exists(upload_key(waiting))


async def test_once_approved_its_age_counts_from_then(
    reviews: Reviews, me: Principal, waiting: uuid.UUID, clock: Clock, cleaner: Janitor, hot: Connection
) -> None:
    await clock.forward(29 * DAY)
    await reviews.approve(me.owner, waiting, 0, author="session")
    await clock.forward(29 * DAY)
    await cleaner.clean()
    assert await status(hot, waiting) == "complete"
    await clock.forward(2 * DAY)
    await cleaner.clean()
    assert await status(hot, waiting) == "expired"


async def test_erased_and_deleted_nothing_of_it_is_left(
    conversions: Conversions, reviews: Reviews, me: Principal, waiting: uuid.UUID, hot: Connection
) -> None:
    await reviews.approve(me.owner, waiting, 0, author="key:somebody")
    await conversions.delete(me.owner, waiting)
    kept = await hot.fetchrow("SELECT doubts, approved_by FROM conversions WHERE job_id = $1", waiting)
    assert kept is not None
    assert tuple(kept) == (None, None)


async def test_a_tenants_thresholds_go_with_the_tenant(db: Database, storage: LocalStorage, hot: Connection) -> None:
    await thresholds.set_threshold(hot, "acme", 80)
    await thresholds.set_threshold(hot, "other", 80, mapping="some_v1")
    erasure = await engine_erasure.request(hot, "acme")
    assert (await engine_erasure.erase(db, storage, [ERASER], erasure, within=60)).finished_at is not None
    assert (await thresholds.of_tenant(hot, "acme"), await thresholds.of_tenant(hot, "other")) == ({}, {"some_v1": 80})


async def test_a_worker_holds_back_what_is_below_the_tenants_threshold(
    start_worker: StartWorker, hot: Connection, db: Database, tmp_path: Path
) -> None:
    storage = LocalStorage(tmp_path / "home" / "storage")
    await thresholds.set_threshold(hot, "acme", 80)
    await thresholds.set_threshold(hot, "acme", 0, mapping="other_v1")
    jobs = {}
    for tenant in ("acme", "globex"):
        job = new_id()
        await storage.put(upload_key(job), data := pdf())
        payload = {"upload_key": upload_key(job), "mapping": "some_v1", "bytes": len(data)}
        jobs[tenant] = (await enqueue(hot, NewJob(CONVERT_PDF, tenant, payload, id=job))).id
    values = {"number": {"raw": "7", "rule": "fields.number", "confidence": 75}}
    answer = {
        "xml": "<a/>",
        "mapping": {"name": "some_v1"},
        "source": {"pages": [{}]},
        "provenance": {"fields": values, "tables": {}},
        "review": {"below": None, "essential": ["number"], "disproved": []},
    }
    async with sick_gateway(answering(200, json.dumps(answer).encode())) as gateway:
        start_worker(worker_handlers="", gateway_url=gateway.url)
        for job in jobs.values():
            assert (await the_end(hot, job))["state"] == "succeeded"
    assert {tenant: await status(hot, job) for tenant, job in jobs.items()} == {
        "acme": "needs_review",
        "globex": "complete",
    }
    team = of_tenant("acme", frozenset(), new_id())
    record = await Downloads(db).provenance(team.owner, jobs["acme"])
    assert json.loads(await storage.get(record.storage_key))["review"] == {
        "below": 80,
        "essential": ["number"],
        "disproved": [],
        "doubts": ["number"],
    }
    conversions = Conversions(db, storage, Subscriptions(db))
    told = {one.event: one.detail for one in await conversions.events(team.owner, jobs["acme"])}
    assert told["needs_review"]["message"] == "1 value is less than 80 % sure: a person has to look first"
