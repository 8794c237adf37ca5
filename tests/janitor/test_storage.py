"""Storage and rows compared, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from support.clock import Clock
from support.janitor import DAY, Janitor, document, janitor, named_keys, status, stored_keys
from waybill.changes.subscriptions import Changes
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Expired, IoFailure
from waybill.ids import new_id
from waybill.janitor.models import Outcome
from waybill.storage import LocalStorage, upload_key
from waybill_convert.kinds import XML
from waybill_convert.service import Conversions
from waybill_engine import State, control
from waybill_engine.artefacts import artefact_key


async def test_objects_that_no_row_names_go_after_the_grace_period(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    ended = await document(hot, storage, unpublished=True)
    running = await document(hot, storage, "running", unpublished=True)
    strange = {"results/26/01/01/not-a-job/1.xml", "batches/26/01/01/of-another-pipeline", "uploads/readme.txt"}
    for key in (upload_key(new_id()), artefact_key(new_id(), 1, XML), *strange):
        await storage.put(key, b"x")
    await clock.forward(0.9 * DAY)
    assert await cleaner.clean() == {}
    await clock.forward(0.2 * DAY)
    assert await cleaner.would() == {"orphans": 3}
    assert await cleaner.clean() == {"orphans": {"orphans": 3}, "garbage": {"objects": 3}}
    left = await stored_keys(storage)
    assert left == await named_keys(hot) | strange | {artefact_key(running, 9, XML)}
    assert artefact_key(ended, 1, XML) in left


async def test_a_storage_of_another_database_is_not_touched(
    db: Database, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    await storage.put(artefact_key(new_id(), 1, XML), b"x")
    await storage.put("waybill-owner", b"somebody else")
    await clock.forward(2 * DAY)
    reports = await janitor(db, storage).run()
    assert reports["orphans"].outcome is Outcome.FAILED
    assert "belongs to another database" in (reports["orphans"].error or "")
    assert len(await stored_keys(storage)) == 1
    assert {name for name, one in reports.items() if one.outcome is not Outcome.DONE} == {"orphans"}


async def test_everything_is_compared_once_a_day_and_a_pass_goes_on_where_it_was(
    db: Database, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    daily = janitor(db, storage, janitor_scan_interval=DAY)
    await daily.clean()
    job = await document(hot, storage)
    await storage.delete(artefact_key(job, 1, XML))
    await daily.clean()
    assert await status(hot, job) == "complete", "looked at an hour ago"
    await clock.forward(DAY)
    assert (await daily.clean())["missing"] == {"marked": 1}
    # A pass that was interrupted after this job begins there, and does not see what is before.
    await storage.put(artefact_key(job, 1, XML), b"<a/>")
    await hot.execute(
        "UPDATE janitor_places SET place = json_build_object('after', $1::text) WHERE task = 'missing'", str(job)
    )
    assert await daily.clean() == {}
    await clock.forward(DAY)
    assert (await daily.clean())["missing"] == {"unmarked": 1}


async def test_a_row_whose_object_is_missing_says_so_and_says_when_it_is_back(
    cleaner: Janitor, db: Database, hot: Connection, storage: LocalStorage
) -> None:
    conversions = Conversions(db, storage, Changes(db))
    lost, fine, failed = [await document(hot, storage, state) for state in ("succeeded", "succeeded", "failed")]
    await storage.delete(artefact_key(lost, 1, XML))
    await storage.delete(upload_key(failed))
    assert await cleaner.would() == {"missing": 2}
    assert await cleaner.clean() == {"missing": {"marked": 2}}
    assert await named_keys(hot) == await stored_keys(storage)
    assert [await status(hot, job) for job in (lost, fine)] == ["expired", "complete"]
    with pytest.raises(Expired):
        await conversions.result("tenant:acme", lost)
    view = await conversions.get("tenant:acme", failed)
    assert not view.source_kept
    with pytest.raises(Expired):
        await conversions.retry("tenant:acme", failed)
    assert await cleaner.clean() == {}

    await storage.put(artefact_key(lost, 1, XML), b"<a/>")
    await storage.put(upload_key(failed), b"%PDF")
    assert await cleaner.clean() == {"missing": {"unmarked": 2}}
    assert await status(hot, lost) == "complete"
    assert (await conversions.get("tenant:acme", failed)).source_kept


async def test_a_storage_that_has_nothing_is_not_believed(
    db: Database, hot: Connection, storage: LocalStorage, tmp_path: Path
) -> None:
    jobs = [await document(hot, storage) for _ in range(10)]
    elsewhere = janitor(db, LocalStorage(tmp_path / "not-mounted"))
    reports = await elsewhere.run()
    assert "is not believed" in (reports["missing"].error or "")
    assert {await status(hot, job) for job in jobs} == {"complete"}


async def test_files_of_what_was_deleted_or_purged_go_too(
    cleaner: Janitor, db: Database, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    conversions = Conversions(db, storage, Changes(db))
    deleted, purged = [await document(hot, storage, unpublished=True) for _ in range(2)]
    await conversions.delete("tenant:acme", deleted)
    assert await stored_keys(storage) == {
        upload_key(purged),
        *(artefact_key(purged, token, name) for token, name in ((1, XML), (1, "provenance.json"), (9, XML))),
    }, "what a person deletes is gone at once, and what was never published with it"
    await clock.forward(2 * DAY)
    assert await control.purge(hot, older_than=timedelta(days=1), states=[State.SUCCEEDED]) == 1
    await cleaner.clean()
    assert await stored_keys(storage) == set()
    assert await hot.fetchval("SELECT count(*) FROM garbage") == 0


async def test_a_result_that_is_replaced_leaves_garbage_not_a_leak(
    cleaner: Janitor, hot: Connection, storage: LocalStorage
) -> None:
    job = await document(hot, storage)
    again = await storage.put(artefact_key(job, 2, XML), b"<b/>")
    await hot.execute("UPDATE job_artefacts SET storage_key = $2 WHERE job_id = $1 AND name = 'xml'", job, again.key)
    assert await cleaner.clean() == {"garbage": {"objects": 1}}
    assert await stored_keys(storage) == await named_keys(hot)


class Stubborn(LocalStorage):
    async def delete_many(self, keys: Sequence[str]) -> None:
        if any(key.endswith(".pdf") for key in keys):
            raise IoFailure("The storage does not let this one go.")
        await super().delete_many(keys)


async def test_an_object_the_storage_keeps_is_reported_and_tried_again(
    db: Database, hot: Connection, storage: LocalStorage, tmp_path: Path, clock: Clock
) -> None:
    job = await document(hot, storage)
    await clock.forward(40 * DAY)
    reports = await janitor(db, Stubborn(tmp_path / "storage")).run()
    assert reports["garbage"].error == "The storage does not let this one go."
    assert reports["garbage"].outcome is Outcome.FAILED
    assert reports["garbage"].done == {"objects": 2}, "the others went"
    assert await stored_keys(storage) == {upload_key(job)}
    assert (await janitor(db, storage).clean())["garbage"] == {"objects": 1}
    assert await stored_keys(storage) == set()
