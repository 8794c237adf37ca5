"""The janitor shelves what ended a while ago, and drops days on which everything is past its age."""

from __future__ import annotations

import uuid

from support.clock import Clock
from support.engine import one_job, start_worker
from support.janitor import DAY, Janitor, document, janitor
from waybill.db import Database
from waybill.db.database import Connection
from waybill.retention import holds, set_ages
from waybill.storage import LocalStorage
from waybill_convert.repository import conversions
from waybill_convert.repository.details import DETAILS
from waybill_engine import control, shelf_days
from waybill_engine.erasure import erase, request


async def cancelled(connection: Connection, tenant: str = "acme") -> uuid.UUID:
    job_id = await one_job(connection, tenant=tenant)
    await control.cancel(connection, job_id)
    return job_id


async def shelved(connection: Connection) -> set[uuid.UUID]:
    return {row["id"] for row in await connection.fetch("SELECT id FROM shelved_jobs")}


async def test_jobs_are_shelved_a_day_after_their_end(cleaner: Janitor, hot: Connection, clock: Clock) -> None:
    old = await cancelled(hot)
    await clock.forward(1.5 * DAY)
    young = await cancelled(hot)
    assert (await cleaner.would())["shelf"] == 1
    assert (await cleaner.clean())["shelf"] == {"shelved": 1}
    assert await shelved(hot) == {old}
    assert await hot.fetchval("SELECT id FROM jobs") == young
    assert "shelf" not in await cleaner.clean(), "once is enough"


async def test_jobs_stay_where_they_are_if_asked_to(
    db: Database, storage: LocalStorage, hot: Connection, clock: Clock
) -> None:
    job_id = await cancelled(hot)
    await clock.forward(10 * DAY)
    await janitor(db, storage, shelve_after="never").clean()
    assert await hot.fetchval("SELECT id FROM jobs") == job_id


async def test_jobs_stay_while_a_worker_of_the_first_release_lives(
    cleaner: Janitor, hot: Connection, clock: Clock
) -> None:
    await cancelled(hot)
    await clock.forward(2 * DAY)
    worker = await start_worker(hot, ttl=DAY)
    await hot.execute("UPDATE workers SET version = '0.1.0' WHERE id = $1", worker.id)
    assert "shelf" not in await cleaner.clean()
    await hot.execute("UPDATE workers SET state = 'stopped', stopped_at = now() WHERE id = $1", worker.id)
    assert (await cleaner.clean())["shelf"]["shelved"] == 1


async def test_a_day_on_which_everything_is_past_goes_whole(cleaner: Janitor, hot: Connection, clock: Clock) -> None:
    await cancelled(hot)
    await cancelled(hot)
    await clock.forward(2 * DAY)
    await cleaner.clean()
    await clock.forward(89.5 * DAY)
    done = await cleaner.clean()
    assert done["shelf_days"] == {"days_dropped": 1}
    assert "jobs" not in done, "no row was deleted by itself"
    assert await hot.fetchval("SELECT count(*) FROM all_jobs") == 0
    assert await hot.fetchval("SELECT count(*) FROM all_job_events") == 0
    assert await shelf_days.known(hot) == []


async def test_a_tenants_own_age_counts_on_the_shelf(cleaner: Janitor, hot: Connection, clock: Clock) -> None:
    """One tenant's jobs go early and by themselves, another's keep their day until they are past, too."""
    early, normal, late = [await cancelled(hot, tenant) for tenant in ("early", "acme", "late")]
    await set_ages(hot, "early", {"jobs": 10.0})
    await set_ages(hot, "late", {"jobs": 200.0})
    await clock.forward(2 * DAY)
    await cleaner.clean()
    assert await shelved(hot) == {early, normal, late}
    await clock.forward(10 * DAY)
    await cleaner.clean()
    assert await shelved(hot) == {normal, late}
    await clock.forward(79 * DAY)
    await cleaner.clean()
    assert await shelved(hot) == {normal, late}, "its day may still go whole"
    await clock.forward(3 * DAY)
    await cleaner.clean()
    assert await shelved(hot) == {late}, "it did not, so the job goes by itself"
    await clock.forward(110 * DAY)
    await cleaner.clean()
    assert await shelf_days.known(hot) == []


async def test_a_legal_hold_keeps_a_day(cleaner: Janitor, hot: Connection, clock: Clock) -> None:
    held, other = await cancelled(hot, "held"), await cancelled(hot)
    await holds.hold(hot, "held", "a lawsuit")
    await clock.forward(2 * DAY)
    await cleaner.clean()
    assert await shelved(hot) == {held, other}
    await clock.forward(1000 * DAY)
    await cleaner.clean()
    assert await shelved(hot) == {held}
    await holds.release(hot, "held")
    await cleaner.clean()
    assert await shelf_days.known(hot) == []


async def test_a_shelved_conversion_is_seen_and_ages_as_before(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    job_id = await document(hot, storage, corrected=True)
    before = await hot.fetchrow(f"{DETAILS} WHERE conversions.job_id = $1", job_id)
    revisions = await hot.fetchval("SELECT count(*) FROM revisions")
    await clock.forward(2 * DAY)
    assert (await cleaner.clean())["shelf"]["shelved"] == 1
    after = await hot.fetchrow(f"{DETAILS} WHERE conversions.job_id = $1", job_id)
    assert before is not None
    assert after is not None
    assert {**after, "running_for": None} == {**before, "running_for": None}, "its row is the same, and not a tombstone"
    assert await hot.fetchval("SELECT status FROM conversion_details WHERE job_id = $1", job_id) == "complete"
    assert await hot.fetchval("SELECT count(*) FROM revisions") == revisions
    await clock.forward(200 * DAY)
    await cleaner.clean()
    assert await hot.fetchval("SELECT count(*) FROM all_jobs") == 0
    assert await hot.fetchval("SELECT deleted_at IS NOT NULL FROM conversions WHERE job_id = $1", job_id)
    assert await hot.fetchval("SELECT count(*) FROM revisions") == 0
    await cleaner.clean()
    assert await shelf_days.known(hot) == [], "the empty day is dropped, too"


async def test_a_shelved_conversion_can_be_pinned_and_comes_back(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    job_id = await document(hot, storage)
    await clock.forward(2 * DAY)
    await cleaner.clean()
    assert await shelved(hot) == {job_id}
    async with hot.transaction():
        await control.lock(hot, job_id)
        await conversions.pin(hot, job_id, pinned=True)
    await clock.forward(1000 * DAY)
    await cleaner.clean()
    assert await hot.fetchval("SELECT pinned_at IS NOT NULL FROM jobs WHERE id = $1", job_id)


async def test_an_erasure_forgets_shelved_jobs(
    cleaner: Janitor, db: Database, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    await document(hot, storage, tenant="gone")
    await cancelled(hot, "gone")
    kept = await cancelled(hot, "stays")
    await clock.forward(2 * DAY)
    await cleaner.clean()
    assert len(await shelved(hot)) == 3
    report = await erase(db, storage, [], await request(hot, "gone"), within=60)
    assert (report.jobs, report.finished_at is not None) == (2, True)
    assert await shelved(hot) == {kept}
    assert await hot.fetchval("SELECT count(*) FROM all_job_events") == 1


async def test_a_day_with_jobs_goes_only_if_it_is_known_that_no_pipeline_has_rows_of_them(
    cleaner: Janitor, hot: Connection, clock: Clock
) -> None:
    await cancelled(hot)
    await clock.forward(2 * DAY)
    await cleaner.clean()
    await clock.forward(100 * DAY)
    [day] = await shelf_days.known(hot)
    assert not await shelf_days.past(hot, day, 90.0, None)
    assert not await shelf_days.past(hot, day, 90.0, ["work"])
    assert await shelf_days.past(hot, day, 90.0, ["convert_pdf"])
