"""Which version of a mapping a job runs by, and what becomes of mappings and samples when their tenant goes."""

from __future__ import annotations

import json
import uuid

import asyncpg
import pytest

from convert.test_handlers import Enqueuer, cleaner, enqueuer, theirs
from support.clock import Clock
from support.janitor import DAY, Janitor, stored_keys
from waybill.db import Database, driver
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill.pipelines import brought
from waybill.security import Principal, of_tenant
from waybill.storage import LocalStorage
from waybill.storage.keys import dated
from waybill_convert.handlers import ConvertPayload, note_conversion
from waybill_convert.kinds import CONVERT_PDF
from waybill_convert.mapping_catalogue import MappingCatalogue, MappingOrigin
from waybill_convert.mapping_models import SHARED
from waybill_convert.pinned_catalogues import PinnedCatalogue, PinnedMapping
from waybill_convert.repository import mapping_catalogues, mappings, retired_mappings
from waybill_convert.repository.conversions import NamedMapping, named_mapping
from waybill_documents.catalogue import summary
from waybill_documents.mapping_files import MappingFiles
from waybill_engine import NewJob, enqueue
from waybill_engine import erasure as engine_erasure

__all__ = ["cleaner", "enqueuer"]


@pytest.fixture
def me() -> Principal:
    return of_tenant("acme", frozenset(), new_id())


def files(name: str, title: str) -> MappingFiles:
    return MappingFiles(json.dumps({"format": 1, "name": name, "title": title}), {"a.xsd": "<a/>"})


async def publish(connection: Connection, tenant: str, name: str, title: str = "One") -> str:
    async with connection.transaction():
        assert await mappings.put(connection, tenant, name, title, False, files(name, title), "key:test")
        draft = await mappings.get(connection, tenant, name)
        assert draft is not None
        assert await mappings.publish(connection, tenant, name, draft.changed_at)
    return files(name, title).sha256


async def sample(connection: Connection, storage: LocalStorage, tenant: str, mapping: str) -> str:
    sample_id = new_id()
    stored = await storage.put(f"{dated('samples', sample_id)}.xlsx", b"PK")
    await mappings.add_sample(
        connection, tenant, mapping, sample_id, "one", stored.key, stored.bytes, stored.sha256, {"a": 1}
    )
    return stored.key


async def test_a_job_that_was_enqueued_by_name_gets_its_tenants_version_with_its_first_run(
    enqueuer: Enqueuer, hot: Connection, db: Database
) -> None:
    await publish(hot, "other", "some_v1", "Theirs")
    mine = await publish(hot, "acme", "some_v1", "Mine")
    job = await enqueuer.child(theirs())
    named = await named_mapping(hot, job)
    assert named == NamedMapping("acme", "some_v1", mine)
    await mappings.retire(hot, "acme", "some_v1")
    await publish(hot, SHARED, "some_v1", "Shared later")
    async with db.transaction() as session:  # its next run
        claimed = enqueuer.claimed[0]
        again = await note_conversion(await driver(session), claimed, ConvertPayload.model_validate(claimed.payload))
    assert again == named
    found = await MappingCatalogue().files(hot, again.tenant, again.name, again.sha256)
    assert found == files("some_v1", "Mine")


async def test_a_name_means_the_tenants_own_then_what_is_shared_then_what_is_shipped(hot: Connection) -> None:
    catalogue = MappingCatalogue()
    shipped = summary("oyo_v1")
    assert shipped is not None
    assert await catalogue.resolve(hot, "acme", "oyo_v1") == shipped.sha256
    assert await catalogue.files(hot, "acme", "oyo_v1", shipped.sha256) is None, "the gateway has it"
    assert await catalogue.resolve(hot, "acme", "none_v1") is None
    shared = await publish(hot, SHARED, "both_v1", "Shared")
    own = await publish(hot, "acme", "both_v1", "Own")  # shared first: only a race or an older release could do this
    assert (await catalogue.choices(hot, "acme"))["both_v1"].sha256 == own
    assert (await catalogue.choices(hot, "other"))["both_v1"].sha256 == shared
    assert [await catalogue.resolve(hot, tenant, "both_v1") for tenant in ("acme", "other")] == [own, shared]
    assert await catalogue.files(hot, "other", "both_v1", own) is None, "nobody runs by another tenant's"
    assert await catalogue.files(hot, "acme", "both_v1", shared) == files("both_v1", "Shared")


async def test_a_draft_is_no_version_that_a_job_can_name(hot: Connection) -> None:
    draft = files("mine_v1", "Draft")
    await mappings.put(hot, "acme", "mine_v1", "Draft", False, draft, "key:test")
    catalogue = MappingCatalogue()
    assert await catalogue.resolve(hot, "acme", "mine_v1") is None
    assert await catalogue.files(hot, "acme", "mine_v1", draft.sha256) is None


async def test_what_was_tested_is_what_is_published(hot: Connection, storage: LocalStorage) -> None:
    for change in ("document", "sample"):
        await mappings.put(hot, "acme", f"{change}_v1", "One", False, files(f"{change}_v1", "One"), "key:test")
        tested = await mappings.get(hot, "acme", f"{change}_v1")
        assert tested is not None
        if change == "document":
            await mappings.put(hot, "acme", "document_v1", "Two", False, files("document_v1", "Two"), "key:test")
        else:
            await sample(hot, storage, "acme", "sample_v1")
        assert not await mappings.publish(hot, "acme", f"{change}_v1", tested.changed_at)


async def test_an_erased_tenants_mappings_go_with_their_samples_and_nobody_elses(
    enqueuer: Enqueuer, hot: Connection, db: Database, storage: LocalStorage
) -> None:
    kept = []
    for tenant in ("acme", "other", SHARED):
        await publish(hot, tenant, f"of_{tenant or 'all'}_v1")
        kept.append(await sample(hot, storage, tenant, f"of_{tenant or 'all'}_v1"))
    await enqueuer.child(theirs())
    await enqueuer.finish()
    async with db.hot() as connection:
        erasure = await engine_erasure.request(connection, "acme")
    assert (await engine_erasure.erase(db, storage, brought("erasure"), erasure, within=60)).finished_at is not None
    left = {row["tenant"] for row in await hot.fetch("SELECT tenant FROM mappings")}
    assert left == {row["tenant"] for row in await hot.fetch("SELECT tenant FROM mapping_samples")} == {"other", SHARED}
    assert set(kept[1:]) <= await stored_keys(storage)
    assert kept[0] not in await stored_keys(storage)


async def test_the_janitor_keeps_samples_and_removes_what_no_row_names(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    await publish(hot, "acme", "mine_v1")
    kept = await sample(hot, storage, "acme", "mine_v1")
    for ending in ("pdf", "csv", "xlsx", "xml"):
        await storage.put(f"{dated('samples', new_id())}.{ending}", b"no row names it")
    await clock.forward(40 * DAY)
    await cleaner.clean()
    await cleaner.clean()
    assert await stored_keys(storage) == {kept}
    row = await hot.fetchval("SELECT id FROM mapping_samples")
    assert await mappings.remove_sample(hot, "acme", "mine_v1", uuid.UUID(str(row)))
    await clock.forward(40 * DAY)
    await cleaner.clean()
    assert await stored_keys(storage) == set()


async def named_by(connection: Connection, enqueuer: Enqueuer, how: str) -> None:
    """Have something name the mapping `kept_v1` in the version that it has."""
    sha256 = files("kept_v1", "One").sha256
    if how == "a catalogue":
        pinned = PinnedCatalogue((PinnedMapping("kept_v1", sha256, MappingOrigin.OWN),))
        await mapping_catalogues.pin(connection, pinned.sha256, pinned.to_json())
        await connection.execute("UPDATE mapping_catalogues SET used_at = 'infinity'")
        return
    if how == "a job that never ran":
        payload = {"upload_key": theirs(), "mapping": "kept_v1", "bytes": 4}
        await enqueue(connection, NewJob(CONVERT_PDF, "acme", payload))
        return
    job = await enqueuer.child(theirs())
    changes = {
        "a job": "mapping = 'kept_v1', mapping_sha256 = $2",
        "a job without a hash": "mapping = 'kept_v1', mapping_sha256 = NULL, original_name = left($2, 9)",
        "a job that chose it": "mapping = 'auto', mapping_sha256 = 'x', used_mapping = 'kept_v1', used_sha256 = $2",
    }
    await connection.execute(f"UPDATE conversions SET {changes[how]} WHERE job_id = $1", job, sha256)


@pytest.mark.parametrize(
    "how", ["a job", "a job without a hash", "a job that chose it", "a catalogue", "a job that never ran"]
)
async def test_a_retired_mapping_goes_when_it_is_old_and_nothing_names_it_any_more(
    cleaner: Janitor, enqueuer: Enqueuer, hot: Connection, storage: LocalStorage, clock: Clock, how: str
) -> None:
    for name in ("kept_v1", "gone_v1", "used_v1"):
        await publish(hot, "acme", name)
    for tenant, name in (("other", "gone_v1"), (SHARED, "gone_v2")):
        await publish(hot, tenant, name)
    await named_by(hot, enqueuer, how)
    key = await sample(hot, storage, "acme", "gone_v1")
    for tenant, name in (("acme", "kept_v1"), ("acme", "gone_v1"), ("other", "gone_v1"), (SHARED, "gone_v2")):
        assert await mappings.retire(hot, tenant, name)

    async def left() -> set[str]:
        return {f"{row['tenant']}:{row['name']}" for row in await hot.fetch("SELECT tenant, name FROM mappings")}

    await clock.forward(29 * DAY)
    assert not (await cleaner.clean()).get("mappings")
    assert len(await left()) == 5, "none is old enough"
    await clock.forward(2 * DAY)
    await hot.execute("INSERT INTO tenants (name, hold_at, hold_reason) VALUES ('other', now(), 'case 12')")
    assert (await cleaner.clean())["mappings"] == {"mappings": 2}
    assert await left() == {"acme:used_v1", "acme:kept_v1", "other:gone_v1"}
    assert key not in await stored_keys(storage)
    recorded = await hot.fetch(
        "SELECT tenant, subject, detail::text FROM audit_events WHERE action = 'mapping.removed'"
    )
    assert {(row["tenant"], row["subject"]) for row in recorded} == {
        ("acme", "mapping:gone_v1"),
        (None, "mapping:gone_v2"),
    }
    assert files("gone_v1", "One").sha256 in "".join(row["detail"] for row in recorded)

    await hot.execute("UPDATE tenants SET hold_at = NULL, hold_reason = NULL")
    for table in ("jobs", "mapping_catalogues"):
        await hot.execute(f"DELETE FROM {table}")
    assert (await cleaner.clean())["mappings"] == {"mappings": 2}
    assert await left() == {"acme:used_v1"}


async def test_only_a_tenants_own_retired_mappings_are_removed(hot: Connection) -> None:
    await publish(hot, "acme", "mine_v1")
    await publish(hot, "other", "theirs_v1")
    await mappings.retire(hot, "other", "theirs_v1")
    async with hot.transaction():
        assert await retired_mappings.remove(hot, 0, "acme", ["mine_v1", "theirs_v1"]) == []
        with pytest.raises(asyncpg.RaiseError, match="cannot be deleted"):
            async with hot.transaction():
                await hot.execute("DELETE FROM mappings WHERE tenant = 'other'")
    with pytest.raises(asyncpg.RaiseError, match="cannot be deleted"):
        await hot.execute("DELETE FROM mappings")
