"""`convert_pdf` enqueued by the name of its kind: by an operator, or as a child of another pipeline's job.

It gets its row in `conversions` when it first runs, and from then on it is a conversion like any other. A child is in
no list. A document that lies under somebody else's key is borrowed: convert reads it and never removes it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from convert.conftest import put, uploads_of
from support.api_server import Converter, pdf
from support.clock import Clock
from support.engine import NO_SETTLE, Connect, failure, take_isolated
from support.janitor import DAY, Janitor, janitor, page_key, status, stored_keys
from support.reviewed_invoices import good, review_desk
from support.sick_gateway import answering, sick_gateway
from support.workers import StartWorker, the_end, worker_starter
from waybill.changes import Subscriptions
from waybill.db import Database, driver
from waybill.db.database import Connection
from waybill.errors import LeaseLost, NotFound
from waybill.ids import new_id
from waybill.pipelines import brought
from waybill.security import Principal, of_session, of_tenant
from waybill.storage import LocalStorage, upload_key
from waybill_convert.clients.page_renderer import GatewayRenderer
from waybill_convert.cursors import Since
from waybill_convert.download_service import Downloads
from waybill_convert.handlers import ConvertPayload, note_conversion
from waybill_convert.kinds import CONVERT_PDF, KINDS
from waybill_convert.repository import listing
from waybill_convert.review_service import Reviews
from waybill_convert.service import Conversions
from waybill_convert.status import Status
from waybill_engine import (
    ClaimedJob,
    JobKind,
    NewJob,
    State,
    control,
    enqueue,
    enqueue_family,
    kind_named,
    register_kinds,
)
from waybill_engine import erasure as engine_erasure
from waybill_engine.lease import fence
from waybill_engine.rescue import rescue

BATCH = JobKind("batch")
"""Somebody's job that waits for conversions."""

GOOD = json.dumps({"xml": "<a/>", "source": {"pages": [{}, {}]}, "data": {"number": "1"}}).encode()


def theirs(name: str = "one.pdf") -> str:
    """A key below a prefix that the janitor scans, with an id that is no job's."""
    return f"uploads/26/01/02/{new_id()}/{name}"


async def stored(storage: LocalStorage, key: str, content: bytes | None = None, **facts: Any) -> dict[str, Any]:
    """Store a document; the payload of a job that converts it."""
    data = pdf() if content is None else content
    await storage.put(key, data)
    return {"upload_key": key, "mapping": "some_v1", "bytes": len(data), **facts}


async def child(connection: Connection, payload: dict[str, Any], who: Principal) -> uuid.UUID:
    """Enqueue a family with one conversion."""
    register_kinds(KINDS)
    new = NewJob(kind_named("convert_pdf"), who.tenant, payload, owner=who.owner)
    await enqueue_family(connection, NewJob(BATCH, who.tenant, owner=who.owner), [new])
    return new.id


async def begin(db: Database, claimed: ClaimedJob) -> None:
    """What a run does first, under its fence."""
    async with db.transaction() as session:
        connection = await driver(session)
        await note_conversion(connection, claimed, ConvertPayload.model_validate(claimed.payload))
        await fence(connection, claimed.worker_id, claimed.id, claimed.token)


@pytest.fixture
async def reviews(db: Database, storage: LocalStorage) -> AsyncIterator[Reviews]:
    renderer = GatewayRenderer("http://127.0.0.1:1", storage)
    async with review_desk(storage) as desk:
        yield Reviews(db, storage, Subscriptions(db), desk, renderer)


@pytest.fixture
def cleaner(db: Database, storage: LocalStorage) -> Janitor:
    return janitor(db, storage)


@pytest.fixture
def start_worker(database_url: str, tmp_path: Path) -> Iterator[StartWorker]:
    with worker_starter(database_url, tmp_path, program="waybill_worker") as start:
        yield start


class Enqueuer:
    """Enqueues conversions by name and runs them, with the engine's functions in the place of a worker."""

    def __init__(self, db: Database, storage: LocalStorage, converter: Converter, me: Principal) -> None:
        self.db, self.storage, self.converter, self.me = db, storage, converter, me

    async def child(self, key: str | None = None, **facts: Any) -> uuid.UUID:
        """A child that runs now, with its document under this key."""
        payload = await stored(self.storage, key or theirs(), **facts)
        job = await child(self.converter.connection, payload, self.me)
        await self.run()
        return job

    async def alone(self, job: uuid.UUID, key: str, **facts: Any) -> uuid.UUID:
        """A job without a parent that runs now."""
        payload = await stored(self.storage, key, **facts)
        new = NewJob(CONVERT_PDF, self.me.tenant, payload, owner=self.me.owner, id=job)
        await enqueue(self.converter.connection, new)
        await self.run()
        return job

    async def run(self) -> list[ClaimedJob]:
        self.claimed = await self.converter.take()
        for one in self.claimed:
            await begin(self.db, one)
        return self.claimed

    async def finish(self, record: bytes = b"{}", xml: bytes = b"<a/>") -> None:
        for one in self.claimed:
            await self.converter.finish(one, xml, record)
        # The parent has nothing to do.
        await self.converter.connection.execute(
            "UPDATE jobs SET state = 'succeeded', finished_at = now(), run_at = now() WHERE kind = 'batch'"
        )


@pytest.fixture
def enqueuer(db: Database, storage: LocalStorage, converter: Converter, me: Principal) -> Enqueuer:
    return Enqueuer(db, storage, converter, me)


async def test_enqueued_by_an_operator_it_is_converted_and_listed_for_the_tenant(
    start_worker: StartWorker, hot: Connection, db: Database, tmp_path: Path
) -> None:
    storage = LocalStorage(tmp_path / "home" / "storage")
    content = pdf()
    known = {"sha256": hashlib.sha256(content).hexdigest(), "original_name": "../Faktur 7.pdf"}
    payload = await stored(storage, theirs(), content, **known)
    job = (await enqueue(hot, NewJob(CONVERT_PDF, "acme", payload))).id
    async with sick_gateway(answering(200, GOOD)) as gateway:
        start_worker(worker_handlers="", gateway_url=gateway.url)
        assert (await the_end(hot, job))["state"] == "succeeded"

    team = of_tenant("acme", frozenset(), new_id())
    conversions = Conversions(db, storage, Subscriptions(db))
    (found,) = (await conversions.listing(team.owner)).jobs
    assert (found.id, found.status, found.original_name) == (job, Status.COMPLETE, "Faktur 7.pdf")
    assert found.listed_at == found.created_at
    result = await Downloads(db).result(team.owner, job)
    assert await storage.get(result.storage_key) == b"<a/>"
    assert await hot.fetchval("SELECT pages FROM conversions") == 2
    assert await storage.exists(payload["upload_key"])


async def test_as_a_child_it_is_in_no_list_and_found_by_its_id(
    start_worker: StartWorker, hot: Connection, db: Database, tmp_path: Path, me: Principal
) -> None:
    storage = LocalStorage(tmp_path / "home" / "storage")
    conversions = Conversions(db, storage, Subscriptions(db))
    mine = (await put(conversions, me)).job.id
    await conversions.cancel(me.owner, mine)
    begun = (await conversions.listing(me.owner)).since
    job = await child(hot, await stored(storage, theirs("march.pdf")), me)
    async with sick_gateway(answering(200, GOOD)) as gateway:
        start_worker(worker_handlers="", gateway_url=gateway.url)
        assert (await the_end(hot, job))["state"] == "succeeded"

    listed = await conversions.listing(me.owner)
    assert [one.id for one in listed.jobs] == [mine]
    assert (listed.total, listed.counts[Status.COMPLETE]) == (1, 0)
    assert [one.id for one in (await conversions.listing(me.owner, words="march")).jobs] == []
    assert job not in [one.id for one in (await conversions.changes_since(me.owner, begun)).jobs]
    assert job not in [one.id for one in (await conversions.changes_since(me.owner, str(Since(0)))).jobs]
    found = await conversions.get(me.owner, job)
    assert (found.status, found.original_name) == (Status.COMPLETE, "march.pdf")
    assert (await Downloads(db).result(me.owner, job)).media_type == "application/xml"
    with pytest.raises(NotFound):
        await conversions.get(of_session(new_id()).owner, job)


async def test_counts_walk_past_a_family_of_any_size(db: Database, hot: Connection, me: Principal) -> None:
    """A list costs what is in it, however many conversions of the same owner are in none."""
    await hot.execute(
        """
        INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, upload_key, status,
                                 listed_at)
        SELECT gen_random_uuid(), 'public', $1, n || '.pdf', n, n, 'm', 'k', 'complete',
               CASE WHEN n % 400 = 0 THEN now() - n * interval '1 second' END
          FROM generate_series(1, 20000) AS n
        """,
        me.owner,
    )
    assert await hot.fetchval("SELECT count(*) FROM conversions WHERE changed IS NULL") == 19950
    nil, last = uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)
    async with db.hot() as connection:
        for _ in range(2):
            for statement, arguments in [
                (listing._PAGE, (me.owner, listing._NEWEST, last, 1000)),
                (listing._PAGE_FILTERED, (me.owner, listing._NEWEST, last, 1000, ["complete"], None, None)),
                (listing._GONE, (me.owner, "0", nil, 1000)),
                (listing._COUNT, (me.owner, ["complete"])),
                (listing._OVERVIEW, (me.owner, ["complete"], 1000)),
            ]:
                explained = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *arguments)
                assert _rows_read(json.loads(explained)[0]["Plan"]) <= 50, statement
            await hot.execute("ANALYZE conversions")
        assert (await listing.overview(connection, me.owner, 1000))[1][Status.COMPLETE] == 50


def _rows_read(plan: dict[str, Any]) -> int:
    """How many rows a plan's scans of `conversions` returned or filtered out, at most."""
    own = 0
    if plan.get("Relation Name") == "conversions" or "conversions" in plan.get("Index Name", ""):
        own = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * (plan["Actual Loops"] > 0)
    return max([int(own), *(_rows_read(one) for one in plan.get("Plans", ()))])


async def test_its_owner_is_not_woken_for_what_is_in_no_list(
    enqueuer: Enqueuer, me: Principal, hot: Connection, connect: Connect
) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    listener = await connect()
    await listener.add_listener("waybill_changes", lambda *news: heard.put_nowait(str(news[-1])))
    await enqueuer.child()
    await enqueuer.finish()
    await hot.execute("SELECT pg_notify('waybill_changes', 'end')")
    assert await asyncio.wait_for(heard.get(), 30) == "end"


async def test_its_status_follows_its_job_whoever_moves_it(
    enqueuer: Enqueuer, conversions: Conversions, me: Principal, hot: Connection, clock: Clock
) -> None:
    job = await enqueuer.child()
    assert await status(hot, job) == "processing"
    await clock.forward(120)
    await rescue(hot, settle_time=NO_SETTLE)
    assert await status(hot, job) == "queued"
    rescuer = await Converter.start(hot, enqueuer.storage)
    (again,) = await take_isolated(hot, rescuer.worker)
    assert await status(hot, job) == "processing"
    await begin(enqueuer.db, again)
    await rescuer.fail(again, failure(retryable=False))
    assert await status(hot, job) == "failed"
    assert (await conversions.retry(me.owner, job)).status is Status.QUEUED
    assert (await conversions.cancel(me.owner, job)).status is Status.CANCELLED


async def test_a_run_that_lost_its_job_makes_no_row(
    db: Database, storage: LocalStorage, converter: Converter, hot: Connection, me: Principal, clock: Clock
) -> None:
    await child(hot, await stored(storage, theirs()), me)
    (stale,) = await converter.take()
    await clock.forward(120)
    await rescue(hot, settle_time=NO_SETTLE)
    with pytest.raises(LeaseLost):
        await begin(db, stale)
    assert await hot.fetchval("SELECT count(*) FROM conversions") == 0


async def test_who_gets_the_job_gets_its_conversion(
    enqueuer: Enqueuer, conversions: Conversions, me: Principal, hot: Connection
) -> None:
    before, after = of_session(new_id()), of_tenant("acme", frozenset(), new_id())
    child_of_mine = await enqueuer.child()
    await control.hand_over(hot, [child_of_mine], before.owner)  # as its parent's pipeline does
    assert (await conversions.get(before.owner, child_of_mine)).status is Status.PROCESSING
    assert await uploads_of(conversions).adopt(before.owner, after) == 1
    assert (await conversions.get(after.owner, child_of_mine)).status is Status.PROCESSING
    job = await child(hot, await stored(enqueuer.storage, theirs()), me)
    claimed = await enqueuer.converter.take()
    await control.hand_over(hot, [job], after.owner)  # between the claim and the row
    await begin(enqueuer.db, claimed[0])
    assert (await conversions.get(after.owner, job)).status is Status.PROCESSING


async def test_it_is_reviewed_and_corrected_like_any_other(
    enqueuer: Enqueuer, reviews: Reviews, downloads: Downloads, storage: LocalStorage, me: Principal
) -> None:
    job = await enqueuer.child(content=good().pdf)
    await enqueuer.finish(good().record, good().xml or b"")
    document = await reviews.document(me.owner, job)
    assert await storage.get(document.upload_key) == good().pdf
    saved = await reviews.save(me.owner, job, 0, [("buyer_name", "PT Baru")], author="session")
    assert saved.number == 1
    result = await downloads.result(me.owner, job)
    assert b"PT Baru" in await storage.get(result.storage_key)
    with pytest.raises(NotFound):
        await reviews.revisions(of_session(new_id()).owner, job)


async def test_it_is_not_given_to_somebody_who_uploads_the_same_document(
    enqueuer: Enqueuer, conversions: Conversions, me: Principal
) -> None:
    content = pdf()
    facts = {"sha256": hashlib.sha256(content).hexdigest(), "mapping": "pt_simon_invoice_v1"}
    job = await enqueuer.child(content=content, **facts)
    uploaded = await put(conversions, me, content)
    assert uploaded.deduped_from is None
    await conversions.cancel(me.owner, job)
    for one in enqueuer.claimed:
        await enqueuer.converter.fail(one, failure(retryable=False))
    assert (await conversions.retry(me.owner, job)).status is Status.QUEUED, "beside the upload, for its family"


async def test_documents_without_a_hash_are_not_taken_for_the_same(
    enqueuer: Enqueuer, conversions: Conversions, me: Principal
) -> None:
    first = await enqueuer.alone(new_id(), theirs(), content=pdf("the one"))
    for one in enqueuer.claimed:
        await enqueuer.converter.fail(one, failure(retryable=False))
    await enqueuer.alone(new_id(), theirs(), content=pdf("another"))
    assert (await conversions.retry(me.owner, first)).status is Status.QUEUED


async def test_a_borrowed_document_outlives_convert_and_the_rest_goes_in_time(
    enqueuer: Enqueuer, cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    key = theirs()
    job = await enqueuer.child(key)
    await enqueuer.finish()
    await storage.put(page_key(job), b"PNG")
    await clock.forward(6 * DAY)
    assert set(await cleaner.clean()) <= {"shelf"}, "it is no orphan while convert needs it"
    await storage.put(other := "batches/26/01/02/x", b"%PDF")
    await hot.execute("UPDATE conversions SET upload_key = $1", other)  # where the janitor does not look for orphans
    await clock.forward(1.1 * DAY)
    done = await cleaner.clean()
    assert done["documents"] == {"let_go": 1}
    assert await storage.exists(other)
    assert not await storage.exists(page_key(job)), "pictures of pages go with the age of documents"
    await clock.forward(23 * DAY)
    assert (await cleaner.clean())["results"]["expired"] == 1
    assert await status(hot, job) == "expired"
    await clock.forward(61 * DAY)
    await cleaner.clean()
    assert await hot.fetchval("SELECT count(*) FROM all_jobs WHERE kind = 'convert_pdf'") == 0
    assert await hot.fetchval("SELECT count(*) FROM conversions") == 0, "what was in no list leaves no tombstone"
    assert await storage.exists(other)


async def test_a_document_that_was_stored_as_the_jobs_own_is_converts(
    enqueuer: Enqueuer, cleaner: Janitor, storage: LocalStorage, clock: Clock
) -> None:
    job = new_id()
    await enqueuer.alone(job, upload_key(job))
    await enqueuer.finish()
    await clock.forward(8 * DAY)
    assert (await cleaner.clean())["documents"]["documents"] == 1
    assert not await storage.exists(upload_key(job))


async def test_deleted_by_its_owner_it_leaves_only_what_was_borrowed(
    enqueuer: Enqueuer, conversions: Conversions, me: Principal, storage: LocalStorage, hot: Connection
) -> None:
    key = theirs()
    job = await enqueuer.child(key)
    await enqueuer.finish()
    await storage.put(page_key(job), b"PNG")
    await conversions.delete(me.owner, job)
    assert await stored_keys(storage) == {key}
    assert await hot.fetchval("SELECT count(*) FROM garbage") == 0


async def test_who_is_erased_is_erased_with_what_is_in_no_list(
    enqueuer: Enqueuer, conversions: Conversions, db: Database, me: Principal, storage: LocalStorage, hot: Connection
) -> None:
    key, own = theirs(), new_id()
    job = await enqueuer.child(key)
    await storage.put(page_key(job), b"PNG")
    await enqueuer.finish()
    await enqueuer.alone(own, upload_key(own))
    await enqueuer.finish()
    await put(conversions, me)
    async with db.hot() as connection:
        erasure = await engine_erasure.request(connection, me.tenant, owner=me.owner)
    done = await engine_erasure.erase(db, storage, brought("erasure"), erasure, within=60)
    assert done.finished_at is not None
    assert (done.jobs, await hot.fetchval("SELECT count(*) FROM conversions")) == (3, 0)
    assert await stored_keys(storage) == {key}, "whose it is erases it"


async def test_what_ends_before_it_ever_ran_has_no_row_and_its_document_goes(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    job = new_id()
    payload = await stored(storage, upload_key(job))
    await enqueue(hot, NewJob(CONVERT_PDF, "acme", payload, id=job))
    await clock.forward(3 * DAY)
    assert await cleaner.clean() == {}, "it still waits"
    await control.cancel(hot, job)
    await clock.forward(2 * DAY)
    assert (await cleaner.clean())["orphans"] == {"orphans": 1}
    assert await hot.fetchval("SELECT count(*) FROM conversions") == 0
    assert await stored_keys(storage) == set()


async def test_a_result_without_a_row_goes_in_time_too(
    converter: Converter, cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    """A worker of release 0.1.0 makes no row."""
    await enqueue(hot, NewJob(CONVERT_PDF, "acme", await stored(storage, theirs())))
    await converter.finish_all()
    await clock.forward(31 * DAY)
    assert (await cleaner.clean())["results"] == {"results": 2, "bytes": 6}
    assert await hot.fetchval("SELECT state FROM all_jobs") == State.SUCCEEDED
