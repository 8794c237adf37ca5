"""Rows whose object is missing say so, and say when it is back."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clock import Clock
from support.janitor import DAY, Janitor, document, janitor, named_keys, result_key, status, stored_keys
from waybill.changes import Subscriptions
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Expired
from waybill.janitor.history import runs
from waybill.storage import LocalStorage, upload_key
from waybill.storage.owner_mark import MarkedStorage
from waybill_convert.download_service import Downloads
from waybill_convert.kinds import XML
from waybill_convert.service import Conversions
from waybill_janitor.report import line, record


async def test_everything_is_compared_once_a_day_and_a_pass_goes_on_where_it_was(
    db: Database, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    daily = janitor(db, storage, janitor_scan_interval=DAY)
    await daily.clean()
    job = await document(hot, storage)
    await storage.delete(result_key(job, 1, XML))
    await daily.clean()
    assert await status(hot, job) == "complete", "looked at an hour ago"
    await clock.forward(DAY)
    assert (await daily.clean())["missing"] == {"marked": 1}
    # A pass that was interrupted after this job begins there, and does not see what is before.
    await storage.put(result_key(job, 1, XML), b"<a/>")
    await hot.execute(
        "UPDATE janitor_places SET place = place::jsonb - 'over' || jsonb_build_object('after', $1::text)"
        " WHERE task = 'missing'",
        str(job),
    )
    assert await daily.clean() == {}
    await clock.forward(DAY)
    assert (await daily.clean())["missing"] == {"unmarked": 1}


async def test_not_looked_and_nothing_found_are_two_sentences(
    db: Database, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    daily = janitor(db, storage, janitor_scan_interval=DAY)
    job = await document(hot, storage)
    reports = await daily.run()
    assert [line(reports[task])[:27] for task in ("missing", "orphans")] == [
        "missing      nothing to do,",
        "orphans      nothing to do,",
    ]
    assert record(reports["missing"])["looked"]
    await storage.delete(result_key(job, 1, XML))
    await clock.forward(DAY / 4)
    reports = await daily.run()
    for task in ("missing", "orphans"):
        assert f"{task:<13}not looked: it has compared everything before, and does so again in 1" in line(reports[task])
        assert not record(reports[task])["looked"]
    assert (await runs(hot))[0][0].tasks[-5].found.keys() == {"next_look_seconds"}
    everything = janitor(db, storage, compare_all=True, janitor_scan_interval=DAY)
    assert await everything.would() == {"missing": 1}, "whoever asks for everything gets everything"
    # A scan that an earlier run began has not looked at everything, either.
    await hot.execute(
        "UPDATE janitor_places SET place = place::jsonb - 'over' || jsonb_build_object('after', $1::text)", str(job)
    )
    assert "nothing to do in the rest of a scan that an earlier run began" in line((await daily.run())["missing"])


async def test_a_row_whose_object_is_missing_says_so_and_says_when_it_is_back(
    cleaner: Janitor, db: Database, hot: Connection, storage: LocalStorage
) -> None:
    conversions = Conversions(db, storage, Subscriptions(db))
    lost, fine, failed = [await document(hot, storage, state) for state in ("succeeded", "succeeded", "failed")]
    await storage.delete(result_key(lost, 1, XML))
    await storage.delete(upload_key(failed))
    assert await cleaner.would() == {"missing": 2}
    assert await cleaner.clean() == {"missing": {"marked": 2}}
    assert await named_keys(hot) == await stored_keys(storage)
    assert [await status(hot, job) for job in (lost, fine)] == ["expired", "complete"]
    with pytest.raises(Expired):
        await Downloads(db).result("tenant:acme", lost)
    view = await conversions.get("tenant:acme", failed)
    assert not view.source_kept
    with pytest.raises(Expired):
        await conversions.retry("tenant:acme", failed)
    assert await cleaner.clean() == {}

    await storage.put(result_key(lost, 1, XML), b"<a/>")
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
    assert "the storage is probably wrong" in (reports["missing"].error or "")
    assert {await status(hot, job) for job in jobs} == {"complete"}


async def test_one_stray_object_does_not_make_an_unmounted_storage_believable(
    db: Database, hot: Connection, storage: LocalStorage, tmp_path: Path
) -> None:
    jobs = [await document(hot, storage) for _ in range(3)]
    await MarkedStorage(storage, db, strict=True).check()
    bare = LocalStorage(tmp_path / "not-mounted")
    await bare.put(result_key(jobs[0], 1, XML), b"<a/>")
    await hot.execute("INSERT INTO garbage (key, since) VALUES ($1, now())", upload_key(jobs[1]))
    reports = await janitor(db, MarkedStorage(bare, db, strict=True)).run()
    assert "not mounted" in (reports["missing"].error or "")
    assert "not mounted" in (reports["garbage"].error or "")
    assert {await status(hot, job) for job in jobs} == {"complete"}
    assert await hot.fetchval("SELECT count(*) FROM garbage") == 1, "what could not be removed is not forgotten"
