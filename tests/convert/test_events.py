"""What happens in convert is told to other pipelines in the same transaction: both happen, or neither."""

from __future__ import annotations

import json
import sys
import textwrap
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from convert.conftest import put
from support.api_server import Converter
from support.clock import Clock
from support.janitor import DAY, document, janitor, status, stored_keys
from support.reviewed_invoices import doubtful, end, good, review_desk
from waybill.changes import Subscriptions, events
from waybill.db import Database
from waybill.db.database import Connection
from waybill.janitor.models import TaskOutcome
from waybill.pipelines import installed
from waybill.security import Principal
from waybill.storage import LocalStorage
from waybill_convert.clients.page_renderer import GatewayRenderer
from waybill_convert.review_service import Reviews
from waybill_convert.service import Conversions

DIARY = """
import json
from waybill.pipelines import Pipeline

PIPELINE = Pipeline(name="diary", listener="waybill_diary:hear")

async def hear(connection, event):
    await connection.execute(
        "INSERT INTO diary VALUES ($1, $2, $3, $4, $5)",
        event.name, event.tenant, event.owner, event.subject, json.dumps(dict(event.data)),
    )
"""


@pytest.fixture
def _diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A second pipeline, installed beside convert: it writes down what it hears."""
    site = tmp_path / "site"
    (site / "waybill_diary-1.dist-info").mkdir(parents=True)
    (site / "waybill_diary.py").write_text(textwrap.dedent(DIARY))
    (site / "waybill_diary-1.dist-info" / "METADATA").write_text("Name: waybill-diary\nVersion: 1\n")
    (site / "waybill_diary-1.dist-info" / "entry_points.txt").write_text(
        "[waybill.pipelines]\ndiary = waybill_diary:PIPELINE\n"
    )
    monkeypatch.syspath_prepend(str(site))
    caches = (installed, events.listeners)
    for cache in caches:
        cache.cache_clear()
    assert {pipeline.name for pipeline in installed()} >= {"convert", "diary"}
    yield
    monkeypatch.undo()
    sys.modules.pop("waybill_diary", None)
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
async def diary(hot: Connection, _diary: None) -> Connection:
    """The connection through which a test reads the diary."""
    await hot.execute("CREATE TABLE diary (name text, tenant text, owner text, subject uuid, data text)")
    return hot


async def heard(diary: Connection) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await diary.fetch("SELECT * FROM diary")]


@pytest.fixture
async def reviews(db: Database, storage: LocalStorage) -> AsyncIterator[Reviews]:
    renderer = GatewayRenderer("http://127.0.0.1:1", storage)
    async with review_desk(storage) as desk:
        yield Reviews(db, storage, Subscriptions(db), desk, renderer)


@pytest.fixture
async def read(conversions: Conversions, converter: Converter, me: Principal) -> uuid.UUID:
    """A complete conversion of an invoice that was really read."""
    job = (await put(conversions, me, good().pdf)).job.id
    await end(converter, good())
    return job


async def test_a_correction_is_told_with_the_number_of_its_revision(
    read: uuid.UUID, diary: Connection, reviews: Reviews, me: Principal
) -> None:
    for number, name in enumerate(("PT Baru", "PT Terbaru")):
        await reviews.save(me.owner, read, number, [("buyer_name", name)], author="session")
    told = [(*row[:-1], json.loads(str(row[-1]))) for row in await heard(diary)]
    assert [(*row[:-1], row[-1].pop("revision")) for row in told] == [
        ("convert.corrected", me.tenant, me.owner, read, 1),
        ("convert.corrected", me.tenant, me.owner, read, 2),
    ]
    for *_, data in told:
        assert data["amounts"]["values"]["total"] == good().data["total"]
        for file in data["files"].values():
            assert len(b"".join([chunk async for chunk in reviews._storage.stream(file["key"])])) == file["bytes"]


async def test_a_correction_that_cannot_be_told_is_not_saved(
    read: uuid.UUID, diary: Connection, reviews: Reviews, me: Principal
) -> None:
    await diary.execute("ALTER TABLE diary ADD CHECK (name <> 'convert.corrected')")
    with pytest.raises(Exception, match="diary"):
        await reviews.save(me.owner, read, 0, [("buyer_name", "PT Baru")], author="session")
    assert await reviews.revisions(me.owner, read) == (0, [])
    assert await diary.fetchval("SELECT count(*) FROM job_events WHERE event = 'corrected'") == 0


async def test_what_retention_takes_is_told_and_what_it_leaves_is_not(
    diary: Connection, db: Database, storage: LocalStorage, clock: Clock
) -> None:
    old, corrected = await document(diary, storage), await document(diary, storage, corrected=True)
    await document(diary, storage, "failed")
    await document(diary, storage, pinned=True)
    await clock.forward(31 * DAY)
    assert (await janitor(db, storage).clean())["results"]["expired"] == 2
    assert sorted(await heard(diary), key=str) == sorted(
        (("convert.expired", "acme", "tenant:acme", job, "{}") for job in (old, corrected)), key=str
    )
    await janitor(db, storage).clean()
    assert len(await heard(diary)) == 2, "once"


async def test_a_result_whose_end_cannot_be_told_stays(
    diary: Connection, db: Database, storage: LocalStorage, clock: Clock
) -> None:
    job = await document(diary, storage)
    await diary.execute("ALTER TABLE diary ADD CHECK (name <> 'convert.expired')")
    await clock.forward(31 * DAY)
    reports = await janitor(db, storage).run()
    assert reports["results"].outcome is TaskOutcome.FAILED
    assert await status(diary, job) == "complete"
    assert len(await stored_keys(storage)) == 2, "its results, without the document"


async def test_others_hear_of_a_result_in_doubt_and_of_its_approval(
    conversions: Conversions, converter: Converter, reviews: Reviews, me: Principal, diary: Connection
) -> None:
    """`convert.completed` comes when the result can be downloaded, whoever made it so."""
    approved = (await put(conversions, me)).job.id
    corrected = (await put(conversions, me)).job.id
    for claimed in await converter.take():
        await converter.finish(claimed, doubtful().xml or b"", doubtful().record, doubtful().doubts)
    await diary.execute("DELETE FROM diary")
    await reviews.approve(me.owner, approved, 0, author="key:a")
    await reviews.approve(me.owner, approved, 0, author="key:b")
    assert await heard(diary) == [
        ("convert.approved", me.tenant, me.owner, approved, '{"revision": 0, "by": "key:a"}'),
        ("convert.completed", me.tenant, me.owner, approved, '{"pages": 1}'),
    ]
    await diary.execute("DELETE FROM diary")
    await reviews.save(me.owner, corrected, 0, [("number", "1")], author="session")
    first, *rest = await heard(diary)
    assert first[:-1] == ("convert.corrected", me.tenant, me.owner, corrected)
    assert rest == [
        ("convert.approved", me.tenant, me.owner, corrected, '{"revision": 1, "by": "session"}'),
        ("convert.completed", me.tenant, me.owner, corrected, '{"pages": 1}'),
    ]
