"""Corrections: each makes a new revision, the latest counts, and nobody's is lost or overwritten."""

from __future__ import annotations

import asyncio
import gc
import json
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from convert.conftest import put
from support.api_server import Converter
from support.engine import Connect, purge
from support.patience import PATIENCE
from support.records import pt_simon_loaded
from support.reviewed_invoices import RIGHT, WRONG, Read, Together, broken, end, good, review_desk
from waybill.changes import Subscriptions
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Conflict, Expired, IoFailure, NotFound, NotReady, Refused
from waybill.ids import new_id
from waybill.security import Principal, of_session
from waybill.storage import LocalStorage, Stored
from waybill_convert.clients.page_renderer import GatewayRenderer
from waybill_convert.download_service import Downloads
from waybill_convert.kinds import PROVENANCE, XML
from waybill_convert.repository import revisions
from waybill_convert.review_service import Reviews
from waybill_convert.review_work import preview, reviser_of
from waybill_convert.reviser import MappingReviser
from waybill_convert.revision_models import Outdated, Typed, Unfit
from waybill_convert.service import Conversions
from waybill_convert.status import Status
from waybill_convert.stored_files import pages_of
from waybill_documents.corrections import Change, apply
from waybill_documents.mapping_files import MappingFiles
from waybill_engine import control
from waybill_engine.models import State

NOWHERE = "http://127.0.0.1:1"

Replica = Callable[..., Reviews]


@pytest.fixture
async def replica(db: Database, storage: LocalStorage) -> AsyncIterator[Replica]:
    """Another process of the API, as far as corrections are concerned."""
    async with review_desk(storage) as desk:
        yield lambda stored=storage: Reviews(db, stored, Subscriptions(db), desk, GatewayRenderer(NOWHERE, stored))


@pytest.fixture
def reviews(replica: Replica) -> Reviews:
    return replica()


@pytest.fixture
async def corrected(conversions: Conversions, converter: Converter, me: Principal) -> uuid.UUID:
    """A complete conversion that can be corrected."""
    return await converted(conversions, converter, me, good())


async def converted(conversions: Conversions, converter: Converter, who: Principal, document: Read) -> uuid.UUID:
    job = (await put(conversions, who, document.pdf)).job.id
    await end(converter, document)
    return job


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the storage keeps its objects."""
    return tmp_path / "storage"


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


async def record_of(reviews: Reviews, owner: str, job: uuid.UUID, number: int | None = None) -> tuple[int, Any]:
    """A revision's number and record; by default the latest one's."""
    found = (await reviews.revisions(owner, job))[0] if number is None else number
    file = await reviews.file(owner, job, found)
    return found, json.loads(await reviews._storage.get(file.storage_key))


async def save(reviews: Reviews, who: Principal, job: uuid.UUID, base: int, *typed: Typed, **how: bool) -> Any:
    return await reviews.save(who.owner, job, base, list(typed), author="key:test", **how)


async def test_a_correction_makes_a_revision_that_is_served_from_then_on(
    conversions: Conversions,
    downloads: Downloads,
    reviews: Reviews,
    me: Principal,
    corrected: uuid.UUID,
    storage: LocalStorage,
) -> None:
    saved = await save(reviews, me, corrected, 0, ("buyer_name", "PT Baru"), ("date", "7 Agustus 2025"))

    assert saved.number == 1
    assert saved.author == "key:test"
    assert saved.accepted is None
    assert saved.changes == [
        {
            "path": "buyer_name",
            "from": good().data["buyer_name"],
            "to": "PT Baru",
            "rule": "fields.buyer_name",
            "typed": "PT Baru",
        },
        {
            "path": "date",
            "from": good().data["date"],
            "to": "2025-08-07",
            "rule": "fields.date",
            "typed": "7 Agustus 2025",
        },
    ]
    assert await reviews.revisions(me.owner, corrected) == (1, [saved])
    assert (await conversions.get(me.owner, corrected)).revision == 1
    latest = await downloads.result(me.owner, corrected)
    xml = etree.fromstring(await storage.get(latest.storage_key))
    assert xml.findtext(".//BuyerName") == "PT Baru"
    assert xml.findtext(".//TaxInvoiceDate") == "2025-08-07"
    assert [each.storage_key async for each in downloads.every_result(me.owner)] == [latest.storage_key]
    record = json.loads(await storage.get((await downloads.provenance(me.owner, corrected)).storage_key))
    assert record["data"] == {**good().data, "buyer_name": "PT Baru", "date": "2025-08-07"}
    assert record["provenance"]["fields"]["buyer_name"]["rule"] == "corrected"
    # What was read stays as it was.
    assert await record_of(reviews, me.owner, corrected, 0) == (0, json.loads(good().record))
    original = await reviews.file(me.owner, corrected, 0, XML)
    assert await storage.get(original.storage_key) == good().xml


async def test_what_failed_is_complete_once_it_is_corrected(
    conversions: Conversions,
    downloads: Downloads,
    converter: Converter,
    reviews: Reviews,
    me: Principal,
    storage: LocalStorage,
) -> None:
    job = await converted(conversions, converter, me, broken())
    since = (await conversions.listing(me.owner)).since
    before = await conversions.get(me.owner, job)
    assert (before.status, before.error is None) == (Status.FAILED, False)
    with pytest.raises(NotFound):
        await reviews.file(me.owner, job, 0, XML)

    await save(reviews, me, job, 0, ("subtotal", RIGHT))

    after = await conversions.get(me.owner, job)
    assert (after.status, after.error, after.revision) == (Status.COMPLETE, None, 1)
    assert after.updated_at > before.updated_at
    result = await downloads.result(me.owner, job)
    assert etree.fromstring(await storage.get(result.storage_key)).tag == "TaxInvoiceBulk"
    assert [each.storage_key async for each in downloads.every_result(me.owner)] == [result.storage_key]
    listed = await conversions.changes_since(me.owner, since)
    assert [(each.id, each.status) for each in listed.jobs] == [(job, Status.COMPLETE)]
    events = await conversions.events(me.owner, job)
    assert (events[-1].event, events[-1].detail["message"]) == ("corrected", "Revision 1 by key:test")
    again = await put(conversions, me, broken().pdf)
    assert (again.deduped_from, again.job.id) == (job, job), "the same document has its corrected result already"


async def test_what_was_corrected_stays_complete_whatever_another_run_of_its_job_does(
    conversions: Conversions,
    downloads: Downloads,
    converter: Converter,
    reviews: Reviews,
    me: Principal,
    hot: Connection,
) -> None:
    job = await converted(conversions, converter, me, broken())
    await save(reviews, me, job, 0, ("subtotal", RIGHT))
    with pytest.raises(Conflict):
        await conversions.retry(me.owner, job)
    await control.retry(hot, job, "by an operator")
    with pytest.raises(NotReady):
        await record_of(reviews, me.owner, job)
    await end(converter, broken())
    after = await conversions.get(me.owner, job)
    assert (after.status, after.revision) == (Status.COMPLETE, 1)
    await control.retry(hot, job, "by an operator")
    await conversions.cancel(me.owner, job)
    assert (await conversions.get(me.owner, job)).status is Status.COMPLETE
    assert "/r1-" in (await downloads.result(me.owner, job)).storage_key


@pytest.mark.timeout(180)
async def test_of_savers_at_once_one_wins_and_the_others_leave_nothing(
    conversions: Conversions, replica: Replica, me: Principal, corrected: uuid.UUID, folder: Path
) -> None:
    before = files(folder)
    together = Together(4, folder)
    saves = [
        save(replica(together), me, corrected, 0, ("buyer_name", f"Buyer {number}"), (f"lines[{number}].name", "x"))
        if number < 3
        else save(replica(together), me, corrected, 0, ("number", "123"))
        for number in range(4)
    ]
    outcomes = await asyncio.gather(*saves, return_exceptions=True)

    won = [each for each in outcomes if not isinstance(each, BaseException)]
    lost = [each for each in outcomes if isinstance(each, Outdated)]
    assert (len(won), len(lost)) == (1, 3), outcomes
    theirs = {change["path"] for change in won[0].changes}
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, Outdated):
            mine = {"number"} if number == 3 else {"buyer_name", f"lines[{number}].name"}
            assert set(outcome.paths) == mine & theirs
            assert outcome.latest == won[0]
            assert "Revision 1 was saved in the meantime, by key:test." in outcome.message
    assert await reviews_of(replica(), me, corrected) == [won[0]]
    assert len(files(folder) - before) == 2, "the losers' files are gone"


async def reviews_of(reviews: Reviews, who: Principal, job: uuid.UUID) -> Any:
    return (await reviews.revisions(who.owner, job))[1]


async def test_what_is_deleted_meanwhile_is_not_saved(
    conversions: Conversions,
    replica: Replica,
    me: Principal,
    corrected: uuid.UUID,
    folder: Path,
    hot: Connection,
) -> None:
    together = Together(2, folder)
    saving = asyncio.create_task(save(replica(together), me, corrected, 0, ("buyer_name", "x")))
    await _waits(together)
    await conversions.delete(me.owner, corrected)
    await together.barrier.wait()
    with pytest.raises(NotFound):
        await saving
    assert files(folder) == set()
    assert await hot.fetchval("SELECT count(*) FROM revisions") == 0


async def test_what_is_saved_while_it_is_deleted_goes_along(
    conversions: Conversions,
    me: Principal,
    corrected: uuid.UUID,
    storage: LocalStorage,
    folder: Path,
    connect: Connect,
) -> None:
    saver, watcher = await connect(), await connect()
    xml, record = [await storage.put(f"results/{corrected}/r1.{name}", b"x") for name in ("xml", "json")]
    async with saver.transaction():
        saved = await revisions.save(
            saver, corrected, me.owner, 1, author="session", changes=[], accepted=None, xml=xml, record=record
        )
        assert saved is not None
        deleting = asyncio.create_task(conversions.delete(me.owner, corrected))
        async with asyncio.timeout(PATIENCE):
            while not await watcher.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ):
                await asyncio.sleep(0.005)
    await deleting
    assert files(folder) == set()
    assert await watcher.fetchval("SELECT count(*) FROM revisions") == 0


async def test_what_runs_again_meanwhile_is_not_saved(
    conversions: Conversions, converter: Converter, replica: Replica, me: Principal, folder: Path
) -> None:
    job = await converted(conversions, converter, me, broken())
    before = files(folder)
    together = Together(2, folder)
    saving = asyncio.create_task(save(replica(together), me, job, 0, ("subtotal", RIGHT)))
    await _waits(together)
    await conversions.retry(me.owner, job)
    await together.barrier.wait()
    with pytest.raises(NotReady):
        await saving
    assert files(folder) == before


async def _waits(together: Together) -> None:
    async with asyncio.timeout(PATIENCE):
        while not together.barrier.n_waiting:
            await asyncio.sleep(0.005)


async def test_a_revision_that_is_not_the_latest_cannot_be_corrected(
    reviews: Reviews, me: Principal, corrected: uuid.UUID
) -> None:
    first = await save(reviews, me, corrected, 0, ("buyer_name", "A"))
    second = await save(reviews, me, corrected, 1, ("number", "77"))
    for work in (
        save(reviews, me, corrected, 0, ("number", "78"), ("date", "2025-01-01")),
        reviews.preview(me.owner, corrected, 0, [("number", "78"), ("date", "2025-01-01")]),
    ):
        with pytest.raises(Outdated) as refused:
            await work
        assert (refused.value.latest, refused.value.paths) == (second, ["number"])
    with pytest.raises(Refused, match="This job has no revision 3"):
        await save(reviews, me, corrected, 3, ("number", "78"))
    assert await reviews_of(reviews, me, corrected) == [first, second]


async def test_what_cannot_be_taken_or_is_still_wrong_is_not_saved(
    conversions: Conversions, converter: Converter, reviews: Reviews, me: Principal, folder: Path
) -> None:
    job = await converted(conversions, converter, me, broken())
    before = files(folder)
    with pytest.raises(Unfit) as refused:
        await save(reviews, me, job, 0, ("subtotal", "much"), ("buyer_tin", "1"), ("no_such", "x"), accept=True)
    assert [each["path"] for each in refused.value.refused] == ["subtotal", "buyer_tin", "no_such"]
    with pytest.raises(Unfit) as wrong:
        await save(reviews, me, job, 0, ("buyer_name", "PT Baru"))
    assert wrong.value.message.endswith("(and 2 more)")
    assert [each["code"] for each in wrong.value.findings] == ["check_failed"] * 3
    # Whatever is accepted, XML that does not fit its schema is none.
    with pytest.raises(Unfit) as invalid:
        await save(reviews, me, job, 0, ("date", ""), accept=True)
    assert [each["code"] for each in invalid.value.findings] == ["invalid_xml"]
    assert await reviews.revisions(me.owner, job) == (0, [])
    assert files(folder) == before

    saved = await save(reviews, me, job, 0, ("buyer_name", "PT Baru"), accept=True)
    assert saved.accepted == wrong.value.findings
    assert (await conversions.get(me.owner, job)).status is Status.COMPLETE
    for typed in ([], [("buyer_name", "PT Baru")], [("subtotal", WRONG)]):
        with pytest.raises(Refused, match="Nothing was changed"):
            await save(reviews, me, job, 1, *typed, accept=True)


async def test_findings_can_be_accepted_as_they_are(
    conversions: Conversions, converter: Converter, reviews: Reviews, me: Principal
) -> None:
    job = await converted(conversions, converter, me, broken())
    saved = await save(reviews, me, job, 0, accept=True)
    assert saved.changes == []
    assert saved.accepted == json.loads(broken().record)["findings"]


async def test_a_preview_says_what_would_change_and_saves_nothing(
    conversions: Conversions, converter: Converter, reviews: Reviews, me: Principal, folder: Path
) -> None:
    job = await converted(conversions, converter, me, broken())
    before = files(folder)
    preview = await reviews.preview(me.owner, job, 0, [("subtotal", RIGHT), ("lines[0].qty", "many")])
    assert preview.findings == []
    assert [each["path"] for each in preview.refused] == ["lines[0].qty"]
    shown = {path: (value, confidence) for path, value, confidence in preview.moved}
    assert shown["subtotal"] == ("6608687.80", 100)
    assert "lines[0].qty" not in shown
    assert await reviews.revisions(me.owner, job) == (0, [])
    assert files(folder) == before


def test_work_on_a_record_leaves_the_garbage_collector_as_it_was() -> None:
    for switch in (gc.disable, gc.enable):
        switch()
        was_enabled = gc.isenabled()
        preview(good().record, None, [("number", "2")])
        assert gc.isenabled() is was_enabled


async def test_a_diff_names_typed_and_computed_values(reviews: Reviews, me: Principal, corrected: uuid.UUID) -> None:
    await save(reviews, me, corrected, 0, ("lines[1].hs_code", "12345678"))
    await save(reviews, me, corrected, 1, ("buyer_name", "PT Baru"))
    line, name = good().data["lines"][1], good().data["buyer_name"]
    codes = [
        ("lines[1].hs_code", line["hs_code"], "12345678"),
        ("lines[1].goods_code", line["goods_code"], "123456"),
    ]
    assert await reviews.diff(me.owner, corrected, 0, 1) == codes
    assert await reviews.diff(me.owner, corrected, 0, 2) == [("buyer_name", name, "PT Baru"), *codes]
    assert await reviews.diff(me.owner, corrected, 2, 1) == [("buyer_name", "PT Baru", name)]
    assert await reviews.diff(me.owner, corrected, 1, 1) == []
    with pytest.raises(NotFound):
        await reviews.diff(me.owner, corrected, 0, 3)


WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=12)
AMOUNTS = st.decimals(0, 10**6, places=2).map(str)
DAYS = st.dates().map(str)
COLUMNS = ("no", "code", "name", "hs_code", "qty", "unit", "price", "discount", "amount", "vat", "unit_code")


def cells(*columns: str) -> st.SearchStrategy[str]:
    return st.builds("lines[{}].{}".format, st.integers(0, 3), st.sampled_from(columns))


EDITS = st.one_of(
    st.tuples(st.one_of(st.sampled_from(["buyer_name", "buyer_address", "number"]), cells("name", "code")), WORDS),
    st.tuples(st.one_of(st.sampled_from(["subtotal", "total"]), cells("price", "discount", "amount")), AMOUNTS),
    st.tuples(st.sampled_from(["date", "due_date"]), DAYS),
    st.tuples(cells("unit"), st.sampled_from(["Pcs", "Tonne", "pikul"])),
    st.tuples(
        st.one_of(st.sampled_from([*sorted(good().data), "pages", "x"]), cells(*COLUMNS)),
        st.one_of(st.sampled_from(["", "-", "1.250,00", "12.500", "7 Agustus 2025"]), st.text(max_size=12)),
    ),
)


@pytest.mark.timeout(300)
async def test_revision_n_and_its_changes_are_revision_n_plus_1(
    reviews: Reviews, me: Principal, corrected: uuid.UUID, storage: LocalStorage
) -> None:
    loop = asyncio.get_running_loop()
    loaded = pt_simon_loaded()
    computed = {*loaded.mapping.computed, *loaded.mapping.tables["lines"].computed}

    async def hold(typed: list[Typed]) -> None:
        number, before = await record_of(reviews, me.owner, corrected)
        try:
            await save(reviews, me, corrected, number, *typed, accept=True)
        except Refused:
            assert await record_of(reviews, me.owner, corrected) == (number, before)
            return
        latest, after = await record_of(reviews, me.owner, corrected)
        assert latest == number + 1
        (*_, revision) = await reviews_of(reviews, me, corrected)
        replayed = apply(loaded, before, [Change.from_json(change) for change in revision.changes])
        assert json.loads(json.dumps(replayed.to_json())) == after
        kept = await storage.get((await reviews.file(me.owner, corrected, latest, XML)).storage_key)
        assert replayed.xml(pretty=True) == kept
        others = {each.path for each in await reviews.diff(me.owner, corrected, number, latest)}
        others -= {change["path"] for change in revision.changes}
        assert {path.rpartition(".")[2] for path in others} <= computed

    def run(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE)

    @settings(max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(EDITS, max_size=3))
    def explore(typed: list[Typed]) -> None:
        run(hold(typed))

    await asyncio.to_thread(explore)
    assert (await reviews.revisions(me.owner, corrected))[0] > 5, "much of what is typed can be saved"


async def test_a_mapping_that_has_changed_corrects_nothing(
    conversions: Conversions, converter: Converter, reviews: Reviews, me: Principal
) -> None:
    record = json.loads(good().record)
    changed = {**record, "mapping": {**record["mapping"], "sha256": "0" * 64}}
    earlier = {name: record[name] for name in ("mapping", "source", "data", "provenance", "checks", "findings")}
    for made, sentence in ((changed, "The mapping has changed since"), (earlier, "another version of the program")):
        job = (await put(conversions, me, good().pdf + json.dumps(made).encode())).job.id
        await end(converter, Read(good().pdf, json.dumps(made).encode(), good().xml))
        with pytest.raises(Refused, match=sentence):
            await save(reviews, me, job, 0, ("buyer_name", "x"))
        assert (await record_of(reviews, me.owner, job)) == (0, made), "it can be looked at all the same"


def test_a_record_is_corrected_by_the_very_mapping_that_made_it() -> None:
    own = MappingFiles(
        json.dumps({"format": 1, "name": "own_v1", "title": "One", "fields": {"number": {"label": "No"}}})
    )
    made_by = {"name": "own_v1", "sha256": own.sha256}
    record = {
        "mapping": made_by,
        "source": {"kind": "json"},
        "data": {"number": "1"},
        "provenance": {"fields": {"number": {"rule": "fields.number", "raw": "1", "confidence": 95}}, "tables": {}},
        "checks": [],
        "findings": [],
        "carries": {},
        "looked": {},
    }
    for _ in range(2):
        assert reviser_of(own).revise(record, [("number", "2")]).record["data"] == {"number": "2"}
    other = MappingFiles(own.document.replace("One", "Another"))
    for reviser in (reviser_of(other), reviser_of(None), MappingReviser(MappingFiles("{}"))):
        with pytest.raises(Refused, match="has changed"):
            reviser.revise(record, [("number", "2")])
    for name in ("../own", "gone"):
        with pytest.raises(Refused, match="has changed"):
            reviser_of(own).revise({**record, "mapping": {**made_by, "name": name}}, [])


async def test_only_the_owner_of_what_has_ended_may_look(
    conversions: Conversions, converter: Converter, reviews: Reviews, me: Principal, hot: Connection
) -> None:
    job = (await put(conversions, me, good().pdf)).job.id
    stranger = of_session(uuid.uuid4())

    def everything(who: Principal) -> list[Coroutine[Any, Any, Any]]:
        return [
            reviews.revisions(who.owner, job),
            reviews.file(who.owner, job, 0, PROVENANCE),
            reviews.file(who.owner, job, 0, XML),
            reviews.diff(who.owner, job, 0, 0),
            reviews.document(who.owner, job),
            reviews.preview(who.owner, job, 0, []),
            save(reviews, who, job, 0, ("buyer_name", "x")),
        ]

    async def expect(who: Principal, error: type[Refused]) -> None:
        for work in everything(who):
            with pytest.raises(error) as refused:
                await work
            assert type(refused.value) is error

    await expect(me, NotReady)
    await expect(stranger, NotFound)
    await end(converter, good())
    await expect(stranger, NotFound)
    await hot.execute("UPDATE conversions SET status = 'expired'")
    await expect(me, Expired)
    await hot.execute("UPDATE conversions SET status = 'cancelled'")
    await expect(me, NotReady)


async def test_of_what_was_not_read_there_is_nothing_to_correct(
    conversions: Conversions, converter: Converter, reviews: Reviews, me: Principal
) -> None:
    job = (await put(conversions, me)).job.id
    (lease,) = await converter.take()
    await converter.finish(lease)
    with pytest.raises(NotFound, match="nothing to correct"):
        await save(reviews, me, job, 0, ("buyer_name", "x"))


async def test_with_the_job_go_its_revisions_and_pages(
    conversions: Conversions,
    reviews: Reviews,
    me: Principal,
    corrected: uuid.UUID,
    storage: LocalStorage,
    folder: Path,
    hot: Connection,
) -> None:
    await save(reviews, me, corrected, 0, ("buyer_name", "A"))
    await save(reviews, me, corrected, 1, ("buyer_name", "B"))
    mine, other = f"{pages_of(corrected)}/1-2.png", f"{pages_of(new_id())}/1-2.png"
    for key in (mine, other):
        await storage.put(key, b"x")
    await conversions.delete(me.owner, corrected)
    assert files(folder) == {"1-2.png"}
    assert [found.key async for found in storage.list("pages")] == [other]
    assert await hot.fetchval("SELECT count(*) FROM revisions") == 0


async def test_a_purged_job_leaves_no_words_of_its_document(
    reviews: Reviews, me: Principal, corrected: uuid.UUID, hot: Connection
) -> None:
    await save(reviews, me, corrected, 0, ("buyer_name", "A"))
    assert await purge(hot, older_than=timedelta(0), states=[State.SUCCEEDED]) == 1
    assert await hot.fetchval("SELECT count(*) FROM revisions") == 0


class FullDisk(LocalStorage):
    """Has room for XML and none for JSON."""

    async def put(self, key: str, data: Any, *, limit: int | None = None) -> Stored:
        if key.endswith(".json"):
            raise IoFailure("The disk is full.")
        return await super().put(key, data, limit=limit)


async def test_a_revision_is_stored_whole_or_not_at_all(
    replica: Replica, me: Principal, corrected: uuid.UUID, folder: Path
) -> None:
    before = files(folder)
    reviews = replica(FullDisk(folder))
    with pytest.raises(IoFailure):
        await save(reviews, me, corrected, 0, ("buyer_name", "A"))
    assert files(folder) == before
    assert await reviews.revisions(me.owner, corrected) == (0, [])
